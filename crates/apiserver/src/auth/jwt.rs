//! Signed compact tokens (JWS with ES256), and the public keys to check them.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD as BASE64};
use ring::digest;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair, UnparsedPublicKey,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

/// What precedes the 65 bytes of a P-256 point in its `SubjectPublicKeyInfo`.
const SPKI_PREFIX: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce,
    0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];
/// The bytes of a P-256 point that is not compressed.
const POINT_BYTES: usize = 65;
/// Longer tokens are refused unread.
const TOKEN_BYTES_MAX: usize = 16 << 10;

/// A P-256 key that signs tokens.
pub struct SigningKey {
    pair: EcdsaKeyPair,
    random: SystemRandom,
    public: PublicKey,
}

/// A P-256 key that checks tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey {
    id: String,
    point: Vec<u8>,
}

/// Why a key or a token is not accepted.
#[derive(Debug, thiserror::Error)]
pub enum JwtError {
    /// The key is not a P-256 key in PKCS #8.
    #[error("the key is not a P-256 key in PKCS #8: {0}")]
    Key(String),
    /// The system could not sign.
    #[error("the token could not be signed")]
    Sign,
    /// The text is not a token.
    #[error("the token is not a signed compact token")]
    Malformed,
    /// No known key has signed the token.
    #[error("the token was not signed by a known key")]
    Signature,
}

#[derive(Serialize, Deserialize)]
struct Header {
    alg: String,
    #[serde(default)]
    kid: String,
}

impl SigningKey {
    /// The key in a PKCS #8 document.
    pub fn from_pkcs8(der: &[u8]) -> Result<Self, JwtError> {
        let random = SystemRandom::new();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der, &random)
            .map_err(|error| JwtError::Key(error.to_string()))?;
        let public = PublicKey::of_point(pair.public_key().as_ref());
        Ok(SigningKey { pair, random, public })
    }

    /// The key in a PEM text with a PKCS #8 document.
    pub fn from_pem(pem: &str) -> Result<Self, JwtError> {
        let (_, pem) =
            x509_parser::pem::parse_x509_pem(pem.as_bytes()).map_err(|error| JwtError::Key(error.to_string()))?;
        Self::from_pkcs8(&pem.contents)
    }

    /// A new key.
    pub fn generate() -> Result<Self, JwtError> {
        let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new())
            .map_err(|_| JwtError::Key("the system has no randomness".to_owned()))?;
        Self::from_pkcs8(document.as_ref())
    }

    /// The key that checks what this key signs.
    pub fn public(&self) -> &PublicKey {
        &self.public
    }

    /// A token that carries `claims`.
    pub fn sign(&self, claims: &impl Serialize) -> Result<String, JwtError> {
        let header = Header { alg: "ES256".to_owned(), kid: self.public.id.clone() };
        let signed = format!("{}.{}", part(&header)?, part(claims)?);
        let signature = self.pair.sign(&self.random, signed.as_bytes()).map_err(|_| JwtError::Sign)?;
        Ok(format!("{signed}.{}", BASE64.encode(signature)))
    }
}

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("SigningKey").field("public", &self.public).finish_non_exhaustive()
    }
}

impl PublicKey {
    /// The keys in a PEM text of public keys and certificates.
    pub fn all_from_pem(pem: &str) -> Result<Vec<Self>, JwtError> {
        let blocks = x509_parser::pem::Pem::iter_from_buffer(pem.as_bytes());
        blocks.map(|block| Self::from_block(&block.map_err(|error| JwtError::Key(error.to_string()))?)).collect()
    }

    fn from_block(block: &x509_parser::pem::Pem) -> Result<Self, JwtError> {
        let document = match block.label.as_str() {
            "CERTIFICATE" => {
                let certificate = block.parse_x509().map_err(|error| JwtError::Key(error.to_string()))?;
                certificate.tbs_certificate.subject_pki.raw.to_vec()
            }
            _ => block.contents.clone(),
        };
        let point = document.strip_prefix(&SPKI_PREFIX[..]).filter(|point| point.len() == POINT_BYTES);
        point.map(Self::of_point).ok_or_else(|| JwtError::Key("its public key is of another type".to_owned()))
    }

    fn of_point(point: &[u8]) -> Self {
        let document = [&SPKI_PREFIX, point].concat();
        let id = BASE64.encode(digest::digest(&digest::SHA256, &document));
        PublicKey { id, point: point.to_vec() }
    }

    /// The key as a JSON web key.
    pub fn to_jwk(&self) -> Value {
        let (x, y) = self.point[1..].split_at(32);
        json!({
            "use": "sig", "kty": "EC", "crv": "P-256", "alg": "ES256",
            "kid": self.id, "x": BASE64.encode(x), "y": BASE64.encode(y),
        })
    }
}

/// The claims of a token, without checking who signed it.
pub(super) fn read<T: DeserializeOwned>(token: &str) -> Result<T, JwtError> {
    let (_, claims, _, _) = split(token)?;
    Ok(claims)
}

/// The claims of a token that one of `keys` has signed.
pub(super) fn verify<T: DeserializeOwned>(token: &str, keys: &[PublicKey]) -> Result<T, JwtError> {
    let (header, claims, signed, signature) = split::<T>(token)?;
    let candidates = keys.iter().filter(|key| header.kid.is_empty() || key.id == header.kid);
    let good = header.alg == "ES256"
        && candidates.into_iter().any(|key| {
            let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, &key.point);
            key.verify(signed.as_bytes(), &signature).is_ok()
        });
    if good { Ok(claims) } else { Err(JwtError::Signature) }
}

fn split<T: DeserializeOwned>(token: &str) -> Result<(Header, T, &str, Vec<u8>), JwtError> {
    if token.len() > TOKEN_BYTES_MAX {
        return Err(JwtError::Malformed);
    }
    let (signed, signature) = token.rsplit_once('.').ok_or(JwtError::Malformed)?;
    let (header, claims) = signed.split_once('.').ok_or(JwtError::Malformed)?;
    let signature = BASE64.decode(signature).map_err(|_| JwtError::Malformed)?;
    Ok((parse(header)?, parse(claims)?, signed, signature))
}

fn part(value: &impl Serialize) -> Result<String, JwtError> {
    Ok(BASE64.encode(serde_json::to_vec(value).map_err(|_| JwtError::Sign)?))
}

fn parse<T: DeserializeOwned>(part: &str) -> Result<T, JwtError> {
    let bytes = BASE64.decode(part).map_err(|_| JwtError::Malformed)?;
    serde_json::from_slice(&bytes).map_err(|_| JwtError::Malformed)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A fresh key.
    pub(in crate::auth) fn key() -> SigningKey {
        SigningKey::generate().unwrap()
    }

    #[test]
    fn a_token_is_as_its_key_signed_it() {
        let (ours, other) = (key(), key());
        let token = ours.sign(&json!({"sub": "ann"})).unwrap();
        let claims: Value = verify(&token, &[other.public().clone(), ours.public().clone()]).unwrap();
        assert_eq!(claims["sub"], "ann");
        assert!(matches!(verify::<Value>(&token, &[other.public().clone()]), Err(JwtError::Signature)));

        let forged = token
            .split('.')
            .enumerate()
            .map(|(index, part)| if index == 1 { BASE64.encode(r#"{"sub":"bob"}"#) } else { part.to_owned() });
        let forged = forged.collect::<Vec<_>>().join(".");
        assert!(matches!(verify::<Value>(&forged, &[ours.public().clone()]), Err(JwtError::Signature)));
    }

    #[test]
    fn keys_are_read_from_public_keys_and_certificates() {
        let pair = rcgen::KeyPair::generate().unwrap();
        let own = rcgen::CertificateParams::default().self_signed(&pair).unwrap();
        let signing = SigningKey::from_pem(&pair.serialize_pem()).unwrap();
        let both = format!("{}{}", own.pem(), pair.public_key_pem());
        let expected = vec![signing.public().clone(), signing.public().clone()];
        assert_eq!(PublicKey::all_from_pem(&both).unwrap(), expected);
        assert!(SigningKey::from_pem("garbage").is_err());
    }

    #[test]
    fn a_token_without_signature_is_refused() {
        let ours = key();
        let header = BASE64.encode(r#"{"alg":"none"}"#);
        let claims = BASE64.encode(r#"{"sub":"ann"}"#);
        for token in [format!("{header}.{claims}."), format!("{header}.{claims}"), "abc".to_owned(), String::new()] {
            assert!(verify::<Value>(&token, &[ours.public().clone()]).is_err(), "{token}");
        }
    }
}
