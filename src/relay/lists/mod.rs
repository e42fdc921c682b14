//! Lists on their way to the client: they are edited (`tools_page` adds our tools), kept, and sent
//! again while the server is busy (`listing`). `pages` reads those pages of the tools that no client
//! has asked for. What is known of the lists is in `state/lists`.

mod listing;
mod pages;
mod tools_page;
