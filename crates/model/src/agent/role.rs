// SPDX-License-Identifier: Apache-2.0
//! Roles: at most one channel is master; who was it before is slave from then on.

use super::channel::Channel;
use super::{Refusal, Shared};
use openflow::role::{Role, RoleMessage};
use openflow::{Message, error};

impl Channel {
    /// The role that holds: equal, master or slave.
    pub(super) fn role(&self, shared: &Shared) -> Role {
        match self.asked_role {
            Role::Master if shared.master != Some(self.id) => Role::Slave,
            other => other,
        }
    }

    /// Why this channel may not change anything, if it may not.
    pub(super) fn barred(&self, shared: &Shared) -> Option<Refusal> {
        let is_slave = self.role(shared) == Role::Slave;
        is_slave.then(|| Refusal::new(error::IS_SLAVE, "a slave may only read; ask for another role first"))
    }

    pub(super) fn role_request(
        &mut self,
        asked: &RoleMessage,
        shared: &mut Shared,
    ) -> Result<Message, Refusal> {
        shared.generation.accept(asked).map_err(|error| Refusal::new(error.code, error.problem))?;
        if asked.role != Role::NoChange {
            shared.asked_anew = true;
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
