//! A manifest's settings, as one more thing that its hooks may read: `await host.settings()`.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};

use crate::host::{Caller, HostCallError, HostCalls};
use crate::protocol::Offer;

/// The name of the read.
const SETTINGS: &str = "settings";

/// A host that also knows the settings of one manifest.
pub(crate) struct WithSettings {
    host: Arc<dyn HostCalls>,
    settings: BTreeMap<Arc<str>, Value>,
}

impl WithSettings {
    pub(crate) fn new(host: Arc<dyn HostCalls>, settings: BTreeMap<Arc<str>, Value>) -> Self {
        WithSettings { host, settings }
    }
}

#[async_trait]
impl HostCalls for WithSettings {
    fn offers(&self) -> Vec<Offer> {
        let mut offers = self.host.offers();
        offers.push(Offer {
            name: SETTINGS.into(),
            doc: "The settings of the activation manifest.".into(),
            parameters: json!({ "type": "object", "properties": {} }),
        });
        offers
    }

    async fn call(&self, caller: Caller, name: &str, arguments: Value) -> Result<Value, HostCallError> {
        match name {
            SETTINGS => Ok(json!(self.settings)),
            other => self.host.call(caller, other, arguments).await,
        }
    }
}
