package main

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// configuration is the object to apply: only what is wanted of it.
func configuration(content map[string]any, version, kind string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: content}
	object.SetGroupVersionKind(schema.FromAPIVersionAndKind(version, kind))
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(content, "spec", "strategy")
	unstructured.RemoveNestedField(content, "spec", "template", "metadata", "creationTimestamp")
	return object
}
