//! A summarizer that asks a model over HTTP.

use std::time::Duration;

use decant_host::{Failure, FailureKind, JobUsage, Outcome, Summary};
use serde_json::{Value, json};
use ureq::Agent;

use super::{Summarizer, Task};

/// The longest answer that is asked for, in tokens. A summary is far shorter.
const MAX_OUTPUT_TOKENS: u32 = 8_192;

/// After this long a request has failed.
const TIMEOUT: Duration = Duration::from_secs(180);

/// How much of a provider's complaint is passed on, in characters.
const MAX_COMPLAINT: usize = 400;

/// A model of a provider.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    provider: Provider,
    name: String,
    base_url: String,
    /// `None`: the server wants none.
    key: Option<String>,
    agent: Agent,
}

/// Whose interface a request is written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Provider {
    Anthropic,
    /// Also any server that speaks the same.
    OpenAi,
}

/// Why a model cannot be asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ModelError {
    #[error("no such provider: `{0}`; there are anthropic and openai, such as openai/gpt-5-mini")]
    UnknownProvider(String),
    #[error("a model is missing behind `{0}/`")]
    NoModel(String),
    #[error("{0} is not set; it has to hold the key for the provider")]
    NoKey(&'static str),
}

impl Provider {
    /// The name, the variables for the server and the key, and the usual server.
    const fn facts(self) -> [&'static str; 4] {
        match self {
            Self::Anthropic => [
                "anthropic",
                "ANTHROPIC_BASE_URL",
                "ANTHROPIC_API_KEY",
                "https://api.anthropic.com",
            ],
            Self::OpenAi => [
                "openai",
                "OPENAI_BASE_URL",
                "OPENAI_API_KEY",
                "https://api.openai.com/v1",
            ],
        }
    }
}

impl Model {
    /// The model `PROVIDER/MODEL`, with server and key from environment variables. A server of
    /// one's own need not want a key.
    ///
    /// # Errors
    /// There is no such provider, no model in the name, or no key.
    pub(crate) fn named(
        name: &str,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, ModelError> {
        let (provider, model) = name.split_once('/').unwrap_or((name, ""));
        let known = [Provider::Anthropic, Provider::OpenAi];
        let found = known.into_iter().find(|p| p.facts()[0] == provider);
        let found = found.ok_or_else(|| ModelError::UnknownProvider(provider.to_owned()))?;
        if model.trim().is_empty() {
            return Err(ModelError::NoModel(provider.to_owned()));
        }
        let [_, url_variable, key_variable, usual_url] = found.facts();
        let set = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        let own_url = set(url_variable);
        let key = set(key_variable);
        if key.is_none() && own_url.is_none() {
            return Err(ModelError::NoKey(key_variable));
        }
        let base_url = own_url.unwrap_or_else(|| usual_url.to_owned());
        Ok(Self {
            provider: found,
            name: model.to_owned(),
            base_url: base_url.trim_end_matches('/').to_owned(),
            key,
            agent: Agent::config_builder()
                .timeout_global(Some(TIMEOUT))
                .http_status_as_error(false)
                .build()
                .new_agent(),
        })
    }

    fn ask(&self, prompt: &str) -> Result<Summary, Failure> {
        let messages = json!([{ "role": "user", "content": prompt }]);
        let (path, limit) = match self.provider {
            Provider::Anthropic => ("v1/messages", "max_tokens"),
            Provider::OpenAi => ("chat/completions", "max_completion_tokens"),
        };
        let mut request = self.agent.post(format!("{}/{path}", self.base_url));
        request = match (self.provider, &self.key) {
            (Provider::Anthropic, key) => request
                .header("anthropic-version", "2023-06-01")
                .header("x-api-key", key.as_deref().unwrap_or_default()),
            (Provider::OpenAi, Some(key)) => {
                request.header("authorization", format!("Bearer {key}"))
            }
            (Provider::OpenAi, None) => request,
        };
        let body = json!({ "model": self.name, limit: MAX_OUTPUT_TOKENS, "messages": messages });
        let mut response = request.send_json(&body).map_err(|err| unreachable(&err))?;
        let status = response.status().as_u16();
        let text = response.body_mut().read_to_string();
        let text = text.map_err(|err| unreachable(&err))?;
        if status != 200 {
            return Err(refused(status, &text));
        }
        let answer = serde_json::from_str(&text).ok();
        answer
            .and_then(|answer| self.read(&answer))
            .ok_or_else(|| failure(FailureKind::Permanent, &format!("no answer in: {text}")))
    }

    fn read(&self, answer: &Value) -> Option<Summary> {
        let tokens = |name: &str| answer["usage"][name].as_u64();
        let (text, truncated, usage) = match self.provider {
            Provider::Anthropic => {
                let blocks = answer["content"].as_array()?;
                let texts: Vec<&str> = blocks.iter().filter_map(|b| b["text"].as_str()).collect();
                (
                    texts.concat(),
                    answer["stop_reason"] == "max_tokens",
                    tokens("input_tokens").zip(tokens("output_tokens")),
                )
            }
            Provider::OpenAi => {
                let choice = &answer["choices"][0];
                (
                    choice["message"]["content"].as_str()?.to_owned(),
                    choice["finish_reason"] == "length",
                    tokens("prompt_tokens").zip(tokens("completion_tokens")),
                )
            }
        };
        Some(Summary {
            text,
            truncated,
            usage: usage.map(|(input, output)| JobUsage {
                input,
                output,
                cost: None,
            }),
        })
    }
}

impl Summarizer for Model {
    fn summarize(&self, _: Task, prompt: &str) -> Outcome {
        match self.ask(prompt) {
            Ok(answer) => Outcome::Answered(answer),
            Err(failure) => Outcome::Failed(failure),
        }
    }
}

fn unreachable(err: &ureq::Error) -> Failure {
    let kind = match err {
        ureq::Error::Timeout(_) => FailureKind::Timeout,
        _ => FailureKind::Transient,
    };
    failure(kind, &err.to_string())
}

fn refused(status: u16, body: &str) -> Failure {
    let kind = match status {
        408 | 409 | 429 | 500.. => FailureKind::Transient,
        _ => FailureKind::Permanent,
    };
    let complaint: Option<Value> = serde_json::from_str(body).ok();
    let words = complaint
        .as_ref()
        .and_then(|complaint| complaint["error"]["message"].as_str());
    failure(kind, &format!("status {status}: {}", words.unwrap_or(body)))
}

fn failure(kind: FailureKind, message: &str) -> Failure {
    Failure {
        kind,
        message: message.chars().take(MAX_COMPLAINT).collect(),
        usage: None,
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::TcpListener;
    use std::thread::{JoinHandle, spawn};

    use super::*;

    /// A server for one request: where it is, and what it will have been asked.
    fn server(status: u16, body: &'static str) -> (String, JoinHandle<(String, Value)>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let asked = spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(stream);
            let (mut head, mut len) = (String::new(), 0);
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                let line = line.to_ascii_lowercase();
                if let Some(written) = line.strip_prefix("content-length:") {
                    len = written.trim().parse().unwrap();
                }
                if line.trim().is_empty() {
                    break;
                }
                head.push_str(&line);
            }
            let mut sent = vec![0; len];
            reader.read_exact(&mut sent).unwrap();
            let answer = format!(
                "HTTP/1.1 {status} x\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
            reader.get_mut().write_all(answer.as_bytes()).unwrap();
            (head, serde_json::from_slice(&sent).unwrap())
        });
        (url, asked)
    }

    fn model(name: &str, url: &str) -> Model {
        let variable = |name: &str| match name.rsplit('_').next() {
            Some("URL") => Some(url.to_owned()),
            _ => Some("secret".to_owned()),
        };
        Model::named(name, &variable).unwrap()
    }

    #[test]
    fn a_model_is_named_with_its_provider() {
        let none = |_: &str| None;
        let key = |name: &str| name.ends_with("KEY").then(|| "k".to_owned());
        let url = |name: &str| {
            name.ends_with("URL")
                .then(|| "http://localhost:1/v1/".to_owned())
        };
        let named = |name: &str, variable| Model::named(name, variable).map(|m| m.base_url);
        let no_key = || Err(ModelError::NoKey("OPENAI_API_KEY"));
        assert_eq!(named("openai/gpt", &none), no_key());
        assert_eq!(
            named("openai/gpt", &key),
            Ok("https://api.openai.com/v1".to_owned())
        );
        assert_eq!(
            named("openai/a/b", &url),
            Ok("http://localhost:1/v1".to_owned())
        );
        assert_eq!(
            named("anthropic/x", &key),
            Ok("https://api.anthropic.com".to_owned())
        );
        let missing = Err(ModelError::NoModel("openai".to_owned()));
        assert_eq!(named("openai/ ", &key), missing);
        let unknown = Err(ModelError::UnknownProvider("gpt".to_owned()));
        assert_eq!(named("gpt", &key), unknown);
    }

    #[test]
    fn both_interfaces_are_spoken() {
        let rows = [
            (
                "anthropic/m",
                r#"{"content":[{"type":"thinking"},{"type":"text","text":"done"}],"stop_reason":"max_tokens","usage":{"input_tokens":7,"output_tokens":2}}"#,
                "post /v1/messages",
                "x-api-key: secret",
            ),
            (
                "openai/m",
                r#"{"choices":[{"message":{"content":"done"},"finish_reason":"length"}],"usage":{"prompt_tokens":7,"completion_tokens":2}}"#,
                "post /chat/completions",
                "authorization: bearer secret",
            ),
        ];
        for (name, body, path, key) in rows {
            let (url, asked) = server(200, body);
            let outcome = model(name, &url).summarize(Task::Batch, "why?");
            let Outcome::Answered(answer) = outcome else {
                panic!("{outcome:?}");
            };
            assert_eq!((answer.text.as_str(), answer.truncated), ("done", true));
            let usage = answer.usage.unwrap();
            assert_eq!((usage.input, usage.output), (7, 2));
            let (head, sent) = asked.join().unwrap();
            assert!(head.starts_with(path) && head.contains(key), "{head}");
            assert_eq!(sent["model"], "m");
            assert_eq!(
                sent["messages"],
                json!([{ "role": "user", "content": "why?" }])
            );
        }
    }

    #[test]
    fn a_failure_says_what_the_pruner_can_do_about_it() {
        let rows = [
            (
                429,
                r#"{"error":{"message":"slow down"}}"#,
                FailureKind::Transient,
                "status 429: slow down",
            ),
            (
                401,
                r#"{"error":{"message":"no such key"}}"#,
                FailureKind::Permanent,
                "status 401: no such key",
            ),
            (503, "<html>", FailureKind::Transient, "status 503: <html>"),
            (200, "{}", FailureKind::Permanent, "no answer in: {}"),
        ];
        for (status, body, kind, message) in rows {
            let (url, asked) = server(status, body);
            let outcome = model("openai/m", &url).summarize(Task::Range, "x");
            let Outcome::Failed(failure) = outcome else {
                panic!("{outcome:?}");
            };
            assert_eq!((failure.kind, failure.message.as_str()), (kind, message));
            asked.join().unwrap();
        }
        let outcome = model("openai/m", "http://127.0.0.1:1").summarize(Task::Range, "x");
        assert!(
            matches!(&outcome, Outcome::Failed(failure) if failure.kind == FailureKind::Transient),
            "{outcome:?}"
        );
    }
}
