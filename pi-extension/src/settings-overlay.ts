// The settings on the screen, and `/pruner settings KEY VALUE` where there is none.

import { getSettingsListTheme, type Theme } from "@mariozechner/pi-coding-agent";
import { type Component, Input, type SettingItem, SettingsList } from "@mariozechner/pi-tui";
import type { Call } from "./commands.ts";
import { change, config, show } from "./setting-commands.ts";
import { findSetting, parseValue, printValue, type Setting, SETTINGS, valueOf } from "./setting-list.ts";

const ROWS = 14;

/** Shows one setting, changes it, or opens the list of all. */
export async function openSettings(call: Call): Promise<void> {
	const [key = "", ...rest] = call.args.split(/\s+/).filter(Boolean);
	if (key === "") return (await openList(call)) ? undefined : call.surface.say(listing(call));
	const setting = findSetting(key);
	if (!setting) return call.surface.say(`There is no setting ${key}. /pruner settings lists them.`, "error");
	if (rest.length === 0) return show(call, setting);
	change(call, setting, parseValue(setting.editor, rest.join(" ")));
}

function listing(call: Call): string {
	const inForce = config(call);
	const width = Math.max(...SETTINGS.map(({ key }) => key.length));
	return SETTINGS.map((setting) => `${setting.key.padEnd(width)}  ${printValue(valueOf(inForce, setting))}  — ${setting.about}`).join("\n");
}

async function openList(call: Call): Promise<boolean> {
	let isOpen = false;
	await call.ctx.ui.custom<void>((tui, theme, _keys, done) => {
		isOpen = true;
		return new SettingsView(call, theme, () => tui.requestRender(), done);
	});
	return isOpen;
}

class SettingsView implements Component {
	readonly #call: Call;
	readonly #theme: Theme;
	readonly #redraw: () => void;
	readonly #list: SettingsList;

	constructor(call: Call, theme: Theme, redraw: () => void, done: () => void) {
		this.#call = call;
		this.#theme = theme;
		this.#redraw = redraw;
		const inForce = config(call);
		const items = SETTINGS.map((setting) => this.#item(setting, inForce));
		this.#list = new SettingsList(items, ROWS, getSettingsListTheme(), (key, value) => this.#changed(key, value), done, { enableSearch: true });
	}

	invalidate(): void {
		this.#list.invalidate();
	}

	render(width: number): string[] {
		return [this.#theme.fg("accent", this.#theme.bold("Decant settings")), ...this.#list.render(width)];
	}

	handleInput(data: string): void {
		this.#list.handleInput(data);
		this.#redraw();
	}

	#item(setting: Setting, inForce: string): SettingItem {
		const { editor, key, about } = setting;
		const item = { id: key, label: key, description: about, currentValue: printValue(valueOf(inForce, setting)) };
		if (editor.kind === "flag") return { ...item, values: ["on", "off"] };
		if (editor.kind === "words") return { ...item, values: [...editor.words] };
		return { ...item, submenu: (current, close) => new ValueInput(setting, current, this.#theme, close) };
	}

	/** The list has taken the new value over already; what was refused, or written differently, is put right. */
	#changed(key: string, value: string): void {
		const setting = findSetting(key);
		if (!setting) return;
		change(this.#call, setting, parseValue(setting.editor, value));
		this.#list.updateValue(key, printValue(valueOf(config(this.#call), setting)));
	}
}

/** A line to type a value into. */
class ValueInput implements Component {
	readonly #head: string;
	readonly #input = new Input();

	constructor(setting: Setting, current: string, theme: Theme, close: (value?: string) => void) {
		this.#head = `${theme.bold(setting.key)}  ${theme.fg("dim", setting.about)}`;
		this.#input.setValue(current === "(none)" ? "" : current);
		this.#input.focused = true;
		this.#input.onSubmit = (value) => close(value.trim() === "" ? "(none)" : value);
		this.#input.onEscape = () => close();
	}

	invalidate(): void {
		this.#input.invalidate();
	}

	render(width: number): string[] {
		return [this.#head, ...this.#input.render(width), "Enter to set · Esc to leave it"];
	}

	handleInput(data: string): void {
		this.#input.handleInput(data);
	}
}
