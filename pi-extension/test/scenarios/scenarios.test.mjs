// The third lane: every scenario has the outcome that the engine and the component in wasmtime have.

import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { runScenario } from "./run.mjs";

const FOLDER = fileURLToPath(new URL("../../../tests/scenarios/", import.meta.url));
const OUTCOME = ".outcome.json";

const files = existsSync(FOLDER) ? readdirSync(FOLDER, { recursive: true }).filter((file) => file.endsWith(".json")).sort() : [];
const scenarios = files.filter((file) => !file.endsWith(OUTCOME));

test("there are scenarios, and each outcome belongs to one", () => {
	assert.ok(scenarios.length > 0);
	const named = new Set(scenarios.map((file) => file.replace(/\.json$/, OUTCOME)));
	assert.deepEqual(files.filter((file) => file.endsWith(OUTCOME) && !named.has(file)), []);
});

for (const file of scenarios) {
	test(file, () => {
		const expected = readFileSync(join(FOLDER, file.replace(/\.json$/, OUTCOME)), "utf8");
		const outcome = runScenario(JSON.parse(readFileSync(join(FOLDER, file), "utf8")));
		if (outcome !== expected) assert.deepEqual(JSON.parse(outcome), JSON.parse(expected));
		assert.equal(outcome, expected, "the same values, but other bytes");
	});
}
