"""The state machine of a classic group, pure: `state.handle` decides, `state.apply` replays."""
