#!/usr/bin/env node
// usage: run.mjs --pi VERSION --script FILE.json --out DIR [--extension PATH]… [--api anthropic|openai]

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { runScript } from "./rig.mjs";

const { values } = parseArgs({
	options: {
		pi: { type: "string" },
		extension: { type: "string", multiple: true, default: [] },
		script: { type: "string" },
		out: { type: "string" },
		api: { type: "string", default: "anthropic" },
	},
});
if (!values.pi || !values.script || !values.out) {
	console.error("usage: run.mjs --pi VERSION --script FILE.json --out DIR [--extension PATH]… [--api anthropic|openai]");
	process.exit(2);
}
const script = JSON.parse(readFileSync(values.script, "utf8"));
const { requests, sessions, events, failure, unscripted, steps } = await runScript({
	pi: values.pi,
	script,
	out: values.out,
	extensions: values.extension,
	api: values.api,
});
const summary = { requests: requests.length, sessions: sessions.map(({ file }) => file), failure: failure?.message, unscripted, steps };
writeFileSync(join(values.out, "summary.json"), JSON.stringify(summary, null, 2));
console.log(JSON.stringify({ ...summary, steps: steps.length, errors: events.filter(({ type }) => type === "extension_error") }));
process.exit(failure || unscripted.length > 0 ? 1 : 0);
