//! How well-known images are made from Debian packages.

use std::collections::BTreeMap;

use super::store::ImageConfig;

/// An image of a Debian package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Recipe {
    /// The package whose version is the image's.
    pub(crate) package: String,
    /// Further packages.
    pub(crate) extra: Vec<&'static str>,
    /// Users besides root and nobody: name and id.
    pub(crate) users: Vec<(&'static str, u32)>,
    /// Directories to make: path, owner, mode.
    pub(crate) directories: Vec<(&'static str, &'static str, u32)>,
    /// Files to write: path, content, mode.
    pub(crate) files: Vec<(&'static str, String, u32)>,
    /// Links to make: path and target; what is there is replaced.
    pub(crate) links: Vec<(&'static str, &'static str)>,
    /// What the image runs and how.
    pub(crate) config: ImageConfig,
}

const ENTRYPOINT: &str = "/usr/local/bin/docker-entrypoint.sh";
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The recipe for an image name; `major` is the leading number of the tag, where packages are named by it.
pub(crate) fn recipe(name: &str, major: Option<&str>) -> Option<Recipe> {
    Some(match name {
        "memcached" => memcached(),
        "redis" => redis(),
        "nginx" => nginx(),
        "postgres" | "postgresql" => postgres(major.unwrap_or("15")),
        "debian" => debian(),
        "busybox" => plain("busybox-static", &["sh"], &[]),
        "mariadb" => plain("mariadb-server", &["mariadbd"], &[]),
        "httpd" => plain("apache2", &["apache2", "-DFOREGROUND"], &[]),
        "python" => plain("python3", &["python3"], &[]),
        "host" => return None,
        name if name.contains(['/', ':']) => return None,
        name => plain(name, &[], &[]),
    })
}

fn plain(package: &str, command: &[&str], extra: &[&'static str]) -> Recipe {
    Recipe {
        package: package.to_owned(),
        extra: extra.to_vec(),
        users: Vec::new(),
        directories: Vec::new(),
        files: Vec::new(),
        links: Vec::new(),
        config: ImageConfig {
            entrypoint: Vec::new(),
            cmd: command.iter().map(|&part| part.to_owned()).collect(),
            env: vec![("PATH".to_owned(), PATH.to_owned())],
            workdir: "/".to_owned(),
            user: String::new(),
            stop_signal: None,
            labels: BTreeMap::new(),
        },
    }
}

/// Arguments that begin with a dash are the program's, as in the usual images.
fn with_entrypoint(mut recipe: Recipe, program: &str) -> Recipe {
    let script = format!("#!/bin/sh\nset -e\ncase \"$1\" in\n-*) set -- {program} \"$@\" ;;\nesac\nexec \"$@\"\n");
    recipe.files.push((ENTRYPOINT, script, 0o755));
    recipe.config.entrypoint = vec![ENTRYPOINT.to_owned()];
    recipe
}

fn memcached() -> Recipe {
    let mut recipe = with_entrypoint(plain("memcached", &["memcached"], &[]), "memcached");
    recipe.users.push(("memcache", 11211));
    recipe.config.user = "memcache".to_owned();
    recipe
}

fn redis() -> Recipe {
    let mut recipe = plain("redis-server", &["redis-server", "--bind", "0.0.0.0", "--protected-mode", "no"], &[]);
    recipe = with_entrypoint(recipe, "redis-server");
    recipe.users.push(("redis", 999));
    recipe.directories.push(("/data", "redis", 0o755));
    recipe.config.workdir = "/data".to_owned();
    recipe.config.user = "redis".to_owned();
    recipe
}

fn nginx() -> Recipe {
    let mut recipe = plain("nginx", &["nginx", "-g", "daemon off;"], &[]);
    recipe.users.push(("www-data", 33));
    recipe.users.push(("nginx", 101));
    recipe.directories.push(("/var/cache/nginx", "root", 0o755));
    recipe.directories.push(("/var/lib/nginx", "root", 0o755));
    recipe.files.push(("/etc/nginx/nginx.conf", NGINX_CONF.to_owned(), 0o644));
    recipe.files.push(("/etc/nginx/conf.d/default.conf", NGINX_SITE.to_owned(), 0o644));
    recipe.links.push(("/var/log/nginx/access.log", "/dev/stdout"));
    recipe.links.push(("/var/log/nginx/error.log", "/dev/stderr"));
    recipe.config.stop_signal = Some("SIGQUIT".to_owned());
    recipe
}

const NGINX_CONF: &str = "user www-data;
worker_processes auto;
pid /run/nginx.pid;
error_log /var/log/nginx/error.log notice;
events { worker_connections 1024; }
http {
    include /etc/nginx/mime.types;
    default_type application/octet-stream;
    access_log /var/log/nginx/access.log;
    sendfile on;
    keepalive_timeout 65;
    include /etc/nginx/conf.d/*.conf;
}
";
const NGINX_SITE: &str = "server {
    listen 80;
    server_name localhost;
    location / {
        root /usr/share/nginx/html;
        index index.html;
    }
}
";

fn postgres(major: &str) -> Recipe {
    let mut recipe = plain(&format!("postgresql-{major}"), &["postgres"], &["sed", "grep"]);
    recipe.users.push(("postgres", 999));
    recipe.directories.push(("/var/lib/postgresql/data", "postgres", 0o700));
    recipe.directories.push(("/var/run/postgresql", "postgres", 0o1777));
    recipe.directories.push(("/docker-entrypoint-initdb.d", "root", 0o755));
    recipe.files.push((ENTRYPOINT, POSTGRES_ENTRYPOINT.to_owned(), 0o755));
    recipe.config.entrypoint = vec![ENTRYPOINT.to_owned()];
    recipe.config.user = "postgres".to_owned();
    recipe.config.stop_signal = Some("SIGINT".to_owned());
    recipe.config.env = vec![
        ("PATH".to_owned(), format!("/usr/lib/postgresql/{major}/bin:{PATH}")),
        ("PGDATA".to_owned(), "/var/lib/postgresql/data".to_owned()),
        ("PG_MAJOR".to_owned(), major.to_owned()),
        ("LANG".to_owned(), "C.UTF-8".to_owned()),
    ];
    recipe
}

const POSTGRES_ENTRYPOINT: &str = r#"#!/bin/sh
set -e
case "$1" in
-*) set -- postgres "$@" ;;
esac
mkdir -p "$PGDATA" 2>/dev/null || true
# The server insists on a directory of its own: a volume of somebody else gets one inside.
[ -O "$PGDATA" ] || export PGDATA="$PGDATA/pgdata"
if [ "$1" = postgres ] && [ ! -s "$PGDATA/PG_VERSION" ]; then
    user=${POSTGRES_USER:-postgres}
    if [ -z "$POSTGRES_PASSWORD" ] && [ "$POSTGRES_HOST_AUTH_METHOD" != trust ]; then
        echo "POSTGRES_PASSWORD is not set: set it, or POSTGRES_HOST_AUTH_METHOD=trust to accept every connection" >&2
        exit 1
    fi
    mkdir -p "$PGDATA"
    chmod 700 "$PGDATA"
    password=$(mktemp)
    printf '%s\n' "${POSTGRES_PASSWORD:-unused}" > "$password"
    initdb --username="$user" --pwfile="$password" --auth-local=trust --auth-host=scram-sha-256 $POSTGRES_INITDB_ARGS
    rm -f "$password"
    echo "host all all all ${POSTGRES_HOST_AUTH_METHOD:-scram-sha-256}" >> "$PGDATA/pg_hba.conf"
    pg_ctl -o "-c listen_addresses='' -c unix_socket_directories=/tmp" -w start
    database=${POSTGRES_DB:-$user}
    if [ "$database" != postgres ]; then
        echo "CREATE DATABASE \"$database\";" | psql -h /tmp -U "$user" -d postgres -v ON_ERROR_STOP=1
    fi
    for file in /docker-entrypoint-initdb.d/*; do
        case "$file" in
        *.sh) . "$file" ;;
        *.sql) psql -h /tmp -U "$user" -d "$database" -v ON_ERROR_STOP=1 -f "$file" ;;
        esac
    done
    pg_ctl -m fast -w stop
fi
[ "$1" = postgres ] && set -- "$@" -c listen_addresses='*'
exec "$@"
"#;

fn debian() -> Recipe {
    plain("base-files", &["bash"], &["bash", "grep", "sed", "findutils", "gawk", "tar", "gzip", "procps", "hostname"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_to_packages() {
        let package = |name: &str, major| recipe(name, major).map(|recipe| recipe.package);
        assert_eq!(package("memcached", None).as_deref(), Some("memcached"));
        assert_eq!(package("redis", Some("7")).as_deref(), Some("redis-server"));
        assert_eq!(package("postgres", Some("15")).as_deref(), Some("postgresql-15"));
        assert_eq!(package("haproxy", None).as_deref(), Some("haproxy"));
        assert_eq!(package("registry.example.com/team/app", None), None);
    }
}
