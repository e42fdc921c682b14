//! Lists of tools: what the fake server is told to have, and what a client is shown.

use std::fs;

use serde_json::{Value, json};

use super::{Answer, Peer, Setup};

/// A list of tools with these names, and nothing else about them.
pub fn tools(names: &[&str]) -> Value {
    names.iter().map(|name| json!({"name": name, "inputSchema": {"type": "object"}})).collect()
}

impl Setup {
    /// The fake server has these tools: the JSON text of a list.
    pub fn tools(self, list: &str) -> Self {
        let file = self.path("tools.json");
        fs::write(&file, list).expect("a file of tools");
        self.flags(&["--tools", &file.display().to_string()])
    }
}

impl Peer {
    /// From here on the fake server, which was set up with a list, has these tools.
    pub fn change_tools(&self, list: &str) {
        fs::write(self.path("tools.json"), list).expect("a file of tools");
    }
}

impl Answer {
    /// The names on a page of `tools/list`.
    pub fn tool_names(&self) -> Vec<&str> {
        let tools = self.result()["tools"].as_array().expect("a list of tools").iter();
        tools.map(|tool| tool["name"].as_str().expect("a name")).collect()
    }
}
