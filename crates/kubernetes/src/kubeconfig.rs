//! The file by which programs reach the API server.

use std::path::Path;

/// The text of a kubeconfig for the user whose certificate is in the files `user`.crt and `user`.key of the folder `keys`.
pub fn kubeconfig(server: &str, keys: &Path, user: &str) -> String {
    let file = |name: &str| keys.join(name).display().to_string();
    let (authority, certificate, key) = (file("ca.crt"), file(&format!("{user}.crt")), file(&format!("{user}.key")));
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: kubernetes\n\
         clusters:\n- name: kubernetes\n  cluster:\n    server: {server}\n    certificate-authority: {authority:?}\n\
         users:\n- name: {user}\n  user:\n    client-certificate: {certificate:?}\n    client-key: {key:?}\n\
         contexts:\n- name: kubernetes\n  context:\n    cluster: kubernetes\n    user: {user}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kubeconfig_names_the_files() {
        let text = kubeconfig("https://127.0.0.1:1", Path::new("/keys"), "admin");
        assert!(text.contains("server: https://127.0.0.1:1\n"), "{text}");
        assert!(text.contains("client-key: \"/keys/admin.key\"\n"), "{text}");
    }
}
