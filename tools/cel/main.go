// Prints the functions that Kubernetes gives to CEL expressions, an overload on each line, and the names of its types.
package main

import (
	"fmt"
	"os"
	"sort"
	"strings"

	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/types"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"

	"github.com/google/cel-go/cel"
)

func main() {
	base := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
	everywhere, err := base.Env(environment.NewExpressions)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	known := print("", everywhere, map[string]bool{})
	mutating, err := everywhere.Extend(library.JSONPatch())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	print("mutation ", mutating, known)
}

// Prints what env has and known has not, each line with a prefix.
func print(prefix string, env *cel.Env, known map[string]bool) map[string]bool {
	functions := env.Functions()
	names := make([]string, 0, len(functions))
	for name := range functions {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		if functions[name].IsDeclarationDisabled() {
			continue
		}
		for _, overload := range functions[name].OverloadDecls() {
			if known[overload.ID()] {
				continue
			}
			known[overload.ID()] = true
			args := overload.ArgTypes()
			target := ""
			if overload.IsMemberFunction() {
				target = checker.FormatCELType(args[0]) + "."
				args = args[1:]
			}
			fmt.Printf("%s%s %s(%s) -> %s\n", prefix, name, target, list(args), checker.FormatCELType(overload.ResultType()))
		}
	}
	return known
}

func list(all []*types.Type) string {
	names := make([]string, 0, len(all))
	for _, one := range all {
		names = append(names, checker.FormatCELType(one))
	}
	return strings.Join(names, ", ")
}
