#!/usr/bin/env node
// Builds the package: the component with cargo (or the file that DECANT_COMPONENT names), its transpiled form in
// component/, and the plain JavaScript and types in dist/.
// usage: node scripts/build.mjs [--if-stale]

import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const HERE = dirname(dirname(fileURLToPath(import.meta.url)));
const ROOT = dirname(HERE);
const OUT = join(HERE, "component");
const TARGET = "wasm32-wasip2";
const PROFILE = "component";
// What rustc uses by default on this target; a stripped component does not say so itself.
const FEATURES = ["bulk-memory", "bulk-memory-opt", "sign-ext", "nontrapping-float-to-int", "mutable-globals", "multivalue", "reference-types"];

const run = (command, args, options = {}) => execFileSync(command, args, { stdio: "inherit", cwd: HERE, ...options });
const bin = (name) => join(HERE, "node_modules", ".bin", name);

const component = process.env.DECANT_COMPONENT ?? buildComponent();
if (!existsSync(component)) throw new Error(`there is no component at ${component}`);
if (!process.argv.includes("--if-stale") || newest(OUT) < statSync(component).mtimeMs) transpile(component);
rmSync(join(HERE, "dist"), { recursive: true, force: true });
run(bin("tsc"), ["-p", "."]);

function buildComponent() {
	const targetDir = process.env.CARGO_TARGET_DIR ?? join(ROOT, "target", "component");
	// Flags and wrappers meant for the host's own build must not reach the component's.
	const { RUSTFLAGS: _flags, CARGO_ENCODED_RUSTFLAGS: _encoded, RUSTC_WRAPPER: _wrapper, ...env } = process.env;
	const args = ["build", "--package", "decant", "--profile", PROFILE, "--target", TARGET, "--target-dir", targetDir];
	run("cargo", args, { cwd: ROOT, env });
	return join(targetDir, TARGET, PROFILE, "decant.wasm");
}

function transpile(file) {
	rmSync(OUT, { recursive: true, force: true });
	const small = optimized(file);
	const options = ["-o", OUT, "--name", "pruner", "-I", "sync", "--strict", "--no-wasi-shim", "--quiet"];
	run(bin("jco"), ["transpile", small, ...options]);
	withoutSuspension(join(OUT, "pruner.js"));
}

/** The component as wasm-opt makes it: a fifth smaller. It takes about a minute, once for each change of the engine. */
function optimized(file) {
	const small = join(dirname(file), "decant.small.wasm");
	run(bin("jco"), ["opt", file, "-o", small, "--quiet", "--", "-Oz", ...FEATURES.map((name) => `--enable-${name}`)]);
	return small;
}

/**
 * jco tries to make suspendable twins of some exports, which nothing here calls. Where the engine cannot, each try
 * throws an error whose message takes V8 4 ms to word: most of the time that a new instance would take.
 */
function withoutSuspension(file) {
	const tried = /try \{\s*(\w+) = WebAssembly\.promising\(([^;]+)\);\s*\} catch ?\(\w+\) \{\s*\1 = \2;\s*\}/g;
	const source = readFileSync(file, "utf8").replace(tried, "$1 = $2;");
	if (source.includes("WebAssembly.promising")) throw new Error(`${file} has suspendable exports of an unknown form`);
	writeFileSync(file, source);
}

/** When the youngest file in `folder` was written; 0 without the folder. */
function newest(folder) {
	if (!existsSync(folder)) return 0;
	return Math.max(0, ...readdirSync(folder).map((name) => statSync(join(folder, name)).mtimeMs));
}
