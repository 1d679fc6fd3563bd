// pi in a real terminal: tmux runs it, types into it and reads its screen.

import { execFileSync, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";

const POLL_MS = 60;
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export const hasTmux = () => spawnSync("tmux", ["-V"]).status === 0;

export class Terminal {
	#server = `decant-${randomBytes(4).toString("hex")}`;

	/** @param {{ command: string[], cwd: string, env: object, columns?: number, rows?: number }} options */
	constructor({ command, cwd, env, columns = 100, rows = 40 }) {
		const words = ["env", "-i", ...Object.entries({ TERM: "xterm-256color", ...env }).map(([name, value]) => `${name}=${value}`), ...command];
		const line = words.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(" ");
		this.#tmux("-f", "/dev/null", "new-session", "-d", "-x", String(columns), "-y", String(rows), "-c", cwd, line);
	}

	#tmux(...args) {
		return execFileSync("tmux", ["-L", this.#server, ...args], { encoding: "utf8" });
	}

	/** Types text as it is. */
	type(text) {
		this.#tmux("send-keys", "-l", text);
	}

	/** Presses keys by tmux's names: Enter, Escape, Up, C-o, … */
	press(...keys) {
		for (const key of keys) this.#tmux("send-keys", key);
	}

	/** What is on the screen, without blanks at line ends. */
	screen() {
		return this.#tmux("capture-pane", "-p").split("\n").map((line) => line.trimEnd()).join("\n");
	}

	/** Waits until the screen shows `pattern` and stands still: a half-painted one is no screen. */
	async shows(pattern, withinMs = 20_000) {
		let before;
		for (const end = Date.now() + withinMs; Date.now() < end; await sleep(POLL_MS)) {
			const screen = this.screen();
			const still = screen.replace(/[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]/g, "⠋");
			if (pattern.test(screen) && still === before) return screen;
			before = still;
		}
		throw new Error(`the screen never showed ${pattern}:\n${this.screen()}`);
	}

	close() {
		spawnSync("tmux", ["-L", this.#server, "kill-server"]);
	}
}
