//! A stream that is used again after its close: a socket that connects again.

use super::Base;

impl Base {
    /// Makes a destroyed stream as it was before, with the listeners that it still has.
    // Node's `_undestroy`.
    pub(in crate::stream) fn undestroy(&self) {
        let ends = [
            &self.destroyed,
            &self.closed,
            &self.close_emitted,
            &self.error_emitted,
            &self.destroy_reported,
            &self.is_released,
        ];
        for flag in ends {
            flag.set(false);
        }
        self.ended_at.set(None);
        self.constructed.set(true);
        let error = self.errored.take();
        drop(error);
        if let Some(readable) = self.readable() {
            readable.undestroy();
        }
        if let Some(writable) = self.writable() {
            writable.undestroy();
        }
    }

    /// Sets whether the close keeps the listeners.
    pub(in crate::stream) fn keep_listeners(&self, keeps: bool) {
        self.keeps_listeners.set(keeps);
        if self.is_over.get() {
            self.release();
        }
    }
}
