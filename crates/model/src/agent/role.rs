// SPDX-License-Identifier: Apache-2.0
//! Roles of channels. At most one channel is master; its predecessor becomes slave.

use super::channel::Channel;
use super::context::Refusal;
use super::shared::Shared;
use openflow::role::{Role, RoleMessage};
use openflow::{Message, error};

impl Channel {
    /// Returns the effective role: equal, master or slave.
    pub(super) fn role(&self, shared: &Shared) -> Role {
        match self.asked_role {
            Role::Master if shared.master != Some(self.id) => Role::Slave,
            other => other,
        }
    }

    /// Returns the reason for refusing a change if this channel is a slave.
    pub(super) fn barred(&self, shared: &Shared) -> Option<Refusal> {
        let is_slave = self.role(shared) == Role::Slave;
        is_slave.then(|| Refusal::new(error::IS_SLAVE, "a slave may only read; request another role first"))
    }

    pub(super) fn role_request(
        &mut self,
        asked: &RoleMessage,
        shared: &mut Shared,
    ) -> Result<Message, Refusal> {
        shared.generation.accept(asked).map_err(|error| Refusal::new(error.code, error.problem))?;
        if asked.role != Role::NoChange {
            shared.subscriptions_changed = true;
            self.asked_role = asked.role;
            if asked.role == Role::Master {
                shared.master = Some(self.id);
            } else if shared.master == Some(self.id) {
                shared.master = None;
            }
        }
        let generation_id = shared.generation.id();
        Ok(Message::RoleReply(RoleMessage { role: self.role(shared), generation_id }))
    }
}
