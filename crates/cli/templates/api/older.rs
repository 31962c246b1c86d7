//! {{Kind}} as it was before {{version}}: without a choice of the image.

use windlass::prelude::*;

use super::{DEFAULT_IMAGE, {{Kind}}Status};

/// Copies of one program, kept running.
#[derive(Resource, Clone, Debug, Serialize, Deserialize, Schema)]
#[resource(group = "{{group}}", version = "{{older}}", kind = "{{Kind}}", status = {{Kind}}Status)]
#[resource(deprecated = "use {{version}}")]
pub struct {{Kind}}Spec {
    /// How many copies run.
    #[schema(max = 100, default = 1)]
    pub size: u32,
}

/// All versions, oldest first. Clients may use each: what a version has no place for is kept beside it.
pub fn versions() -> Versions<super::{{Kind}}> {
    Versions::of::<{{Kind}}>().then(up, down)
}

fn up(old: {{Kind}}) -> super::{{Kind}} {
    let spec = super::{{Kind}}Spec { replicas: old.spec.size, image: DEFAULT_IMAGE.into() };
    super::{{Kind}} { metadata: old.metadata, spec, status: old.status }
}

fn down(new: super::{{Kind}}) -> {{Kind}} {
    let spec = {{Kind}}Spec { size: new.spec.replicas };
    {{Kind}} { metadata: new.metadata, spec, status: new.status }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_image_has_no_place_in_{{older}}() {
        versions().losses().assert_only(&["{{version}} -> {{older}}: spec.image"]);
    }
}
