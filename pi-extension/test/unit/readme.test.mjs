// The settings as the README, the settings overlay and the pruner itself know them.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { SETTINGS, valueOf } from "../../dist/setting-list.js";
import { FakeManager, sessionOf } from "./pi.mjs";

const readme = readFileSync(new URL("../../README.md", import.meta.url), "utf8");
const rows = new Map([...readme.matchAll(/^\| `([A-Za-z.]+)` \| [^|]+ \| ([^|]+) \|/gm)].map(([, key, value]) => [key, value.replaceAll("`", "").trim()]));
const { session } = sessionOf(new FakeManager(), { config: { minBatchChars: 1000 } });
const defaults = session.command(({ control }) => control.config());

function keysOf(object, path = "") {
	return Object.entries(object).flatMap(([key, value]) => (typeof value === "object" && value !== null && !Array.isArray(value) ? keysOf(value, `${path}${key}.`) : [`${path}${key}`]));
}

test("the README and the overlay have every setting, and no other", () => {
	const keys = keysOf(JSON.parse(defaults)).sort();
	assert.deepEqual([...rows.keys()].sort(), keys);
	assert.deepEqual(SETTINGS.map(({ key }) => key).sort(), keys);
});

test("the README's defaults are the pruner's", () => {
	for (const setting of SETTINGS) {
		const value = valueOf(defaults, setting);
		assert.equal(rows.get(setting.key), Array.isArray(value) ? `[${value.join(", ")}]` : String(value), setting.key);
	}
});
