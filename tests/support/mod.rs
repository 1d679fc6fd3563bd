//! What the integration tests share.

pub(crate) mod difference;
pub(crate) mod engine_lane;
