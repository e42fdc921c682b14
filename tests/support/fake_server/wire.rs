//! The way to the client.

/// Where the messages of one request go: stdout, or the answer to a POST.
pub(crate) trait Wire: Send + Sync {
    /// Writes a message that is not the answer.
    fn line(&self, line: &str);

    /// Writes bytes as they are.
    fn bytes(&self, bytes: &[u8]);

    /// Work begins whose answer may come late.
    fn begin(&self) {}

    /// Writes the answer.
    fn answer(&self, line: &str) {
        self.line(line);
    }

    /// Nothing more comes for the request.
    fn end(&self) {}

    /// Ends the answer in due form, while the request goes on.
    fn pause(&self) {}

    /// Closes for the reader, while the process lives on.
    fn cut(&self);
}
