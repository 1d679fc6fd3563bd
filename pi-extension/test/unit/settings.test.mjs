import assert from "node:assert/strict";
import { chmodSync, lstatSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { changedList } from "../../dist/setting-commands.js";
import { findSetting, parseValue, printValue, SETTINGS, valueOf } from "../../dist/setting-list.js";
import { Settings, SettingsError } from "../../dist/settings.js";

function folder(t, content) {
	const path = mkdtempSync(join(tmpdir(), "decant-settings-"));
	t.after(() => rmSync(path, { recursive: true, force: true }));
	const file = join(path, "settings.json");
	if (content !== undefined) writeFileSync(file, content);
	return { path, file, text: () => readFileSync(file, "utf8"), settings: new Settings(path) };
}

test("without a file, or without a block, there are no settings", (t) => {
	assert.equal(folder(t).settings.read(), "{}");
	assert.equal(folder(t, "").settings.read(), "{}");
	assert.equal(folder(t, '{"theme":"dark"}').settings.read(), "{}");
});

test("a setting is written and nothing else is touched", (t) => {
	const { settings, text } = folder(t, '{\n    "theme": "dark",\n    "contextPrune": {\n        "old": [1],\n        "chainCompression": {\n            "rollingWindow": 2\n        }\n    },\n    "z": null\n}');
	settings.set(["chainCompression", "openChain", "keepTurns"], 8);
	settings.set(["enabled"], false);
	assert.equal(
		text(),
		'{\n    "theme": "dark",\n    "contextPrune": {\n        "old": [\n            1\n        ],\n        "chainCompression": {\n            "rollingWindow": 2,\n            "openChain": {\n                "keepTurns": 8\n            }\n        },\n        "enabled": false\n    },\n    "z": null\n}',
	);
});

test("tabs, Windows line ends and the final line end stay", (t) => {
	const tabs = folder(t, '{\n\t"a": 1\n}\n');
	tabs.settings.set(["enabled"], true);
	assert.equal(tabs.text(), '{\n\t"a": 1,\n\t"contextPrune": {\n\t\t"enabled": true\n\t}\n}\n');
	const windows = folder(t, '{\r\n  "a": 1\r\n}\r\n');
	windows.settings.set(["enabled"], true);
	assert.equal(windows.text(), '{\r\n  "a": 1,\r\n  "contextPrune": {\r\n    "enabled": true\r\n  }\r\n}\r\n');
});

for (const broken of ['{"a": 1,', "[1]", '"x"']) {
	test(`a broken file is left as it is: ${broken}`, (t) => {
		const { settings, text } = folder(t, broken);
		assert.throws(() => settings.read(), (error) => error instanceof SettingsError && /settings\.json.*left as it is/.test(error.message));
		assert.throws(() => settings.set(["enabled"], true), SettingsError);
		assert.equal(text(), broken);
	});
}

test("a byte order mark is no error", (t) => {
	assert.equal(folder(t, '\ufeff{"contextPrune":{"enabled":false}}').settings.read(), '{"enabled":false}');
});

test("writing goes through a link and keeps the mode", (t) => {
	const { path, settings, file } = folder(t);
	const real = join(path, "real.json");
	writeFileSync(real, "{}");
	chmodSync(real, 0o640);
	symlinkSync(real, file);
	settings.set(["enabled"], true);
	assert.equal(lstatSync(file).isSymbolicLink(), true);
	assert.equal(statSync(real).mode & 0o777, 0o640);
	assert.match(readFileSync(real, "utf8"), /"enabled": true/);
	assert.deepEqual(readdirSync(path).sort(), ["real.json", "settings.json"], "no temporary file is left");
});

test("a change is tried before it is written", (t) => {
	const { settings, text } = folder(t, '{"contextPrune":{"a":1}}');
	assert.equal(settings.with(["enabled"], false), '{"a":1,"enabled":false}');
	assert.equal(text(), '{"contextPrune":{"a":1}}');
});

const parsed = [
	["enabled", "off", false],
	["enabled", "maybe", "maybe"],
	["minBatchChars", "500", 500],
	["minBatchChars", "many", "many"],
	["autoBudgetThreshold", "off", null],
	["autoBudgetThreshold", "0.8", 0.8],
	["protectedTools", "read, todo*", ["read", "todo*"]],
	["protectedTools", "(none)", []],
	["pruneOn", "on-demand", "on-demand"],
];
for (const [key, text, value] of parsed) {
	test(`${key} ${text}`, () => assert.deepEqual(parseValue(findSetting(key).editor, text), value));
}

test("what is printed can be read back", () => {
	for (const value of [true, false, 7, null, ["a", "b"], []]) {
		const editor = { kind: value === null || typeof value === "number" ? "number" : Array.isArray(value) ? "list" : "flag", orNull: true };
		assert.deepEqual(parseValue(editor, printValue(value)), value);
	}
});

test("lists are added to, taken from, cleared and replaced", () => {
	assert.deepEqual(changedList(["a"], "add b c a"), ["a", "b", "c"]);
	assert.deepEqual(changedList(["a", "b"], "remove a x"), ["b"]);
	assert.deepEqual(changedList(["a"], "clear"), []);
	assert.deepEqual(changedList(["a"], "b,c"), ["b", "c"]);
});

test("every setting is named once, and found whatever its case", () => {
	assert.equal(new Set(SETTINGS.map(({ key }) => key)).size, SETTINGS.length);
	assert.equal(findSetting("MINBATCHCHARS").key, "minBatchChars");
	assert.equal(valueOf('{"chainCompression":{"openChain":{"keepTurns":8}}}', findSetting("chainCompression.openChain.keepTurns")), 8);
});
