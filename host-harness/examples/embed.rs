use std::sync::{Arc, Mutex};

use decant_host::{Decant, MemoryHost, Message, Outcome, SessionOptions, Summary};
use serde_json::json;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Once per process.
    let decant = Decant::new()?;

    // Once per conversation. `FileHost` keeps the log on disk instead.
    let host = Arc::new(Mutex::new(MemoryHost::default()));
    let config = json!({ "enabled": true });
    let mut session = decant.open(SessionOptions::new("s1", config), host.clone())?;

    // The agent runs a tool and answers.
    session.push(Message::user("Why does the build fail?", 1_000));
    let output = "warning: unused import\n".repeat(500) + "error: missing semicolon";
    session.push(Message::tool_call(
        "c1",
        "bash",
        &json!({ "command": "make" }),
        2_000,
    ));
    session.push(Message::tool_result("c1", "bash", &output, 3_000));
    session.turn_end(None, 3_001);
    let reply = Message::reply("A semicolon is missing.", 4_000);
    session.reply_end(Some(reply.at_ms()), 4_001);

    // The pruner wants a summary of what the tool returned. A real host asks a model here.
    loop {
        let job = host.lock().unwrap().jobs.take();
        let Some((job, _request)) = job else { break };
        let outcome = Outcome::Answered(Summary {
            text: "- `make` failed: missing semicolon".to_owned(),
            truncated: false,
            usage: None,
        });
        session.summary_ready(job, &outcome, 4_002);
    }
    session.push(reply);

    // What the model sees from here on is short …
    let context = session.context(5_000);
    let chars: usize = context.messages.iter().map(|m| m.text().len()).sum();
    assert!(chars < output.len() / 10);

    // … and the model can have the original back.
    let original = session.answer("context_tree_query", r#"{"toolCallIds":["t1"]}"#, 6_000);
    assert!(original.text.contains("unused import"));
    println!(
        "{} characters of output, {chars} in the context",
        output.len()
    );
    Ok(())
}
