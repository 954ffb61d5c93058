/** Reads JSON as Python's `json.loads` does: see `values.ts` for what comes out. */

import { real, type Table, type Value } from "./values.js";

const SPACE = /[ \t\n\r]*/y;
const NUMBER = /(-?(?:0|[1-9]\d*))(\.\d+)?([eE][-+]?\d+)?/y;
// biome-ignore lint: control characters are what it refuses
const TEXT = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
const WORDS: [string, Value][] = [
  ["null", null],
  ["true", true],
  ["false", false],
  ["NaN", real(NaN)],
  ["Infinity", real(Infinity)],
  ["-Infinity", real(-Infinity)],
];

/** Read a text; throw SyntaxError for anything that is not JSON. */
export function parse(text: string): Value {
  let at = 0;

  const take = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at;
    const found = pattern.exec(text);
    if (found) at = pattern.lastIndex;
    return found;
  };
  const takes = (mark: string): boolean => {
    take(SPACE);
    const found = text.startsWith(mark, at);
    if (found) at += mark.length;
    return found;
  };
  const need = (found: unknown): void => {
    if (!found) throw new SyntaxError();
  };
  const string = (): string => {
    take(SPACE);
    const found = take(TEXT);
    need(found);
    return JSON.parse((found as RegExpExecArray)[0]);
  };

  const value = (): Value => {
    if (takes("{")) {
      const table: Table = new Map();
      if (takes("}")) return table;
      do {
        const key = string();
        need(takes(":"));
        table.set(key, value());
      } while (takes(","));
      need(takes("}"));
      return table;
    }
    if (takes("[")) {
      const list: Value[] = [];
      if (takes("]")) return list;
      do list.push(value());
      while (takes(","));
      need(takes("]"));
      return list;
    }
    if (text[at] === '"') return string();
    for (const [word, meaning] of WORDS) if (takes(word)) return meaning;
    const found = take(NUMBER);
    need(found);
    const [written, whole, fraction, exponent] = found as unknown as [string, string, string?, string?];
    if (fraction || exponent) return real(+written);
    return Number.isSafeInteger(+whole) ? +whole + 0 : BigInt(whole);
  };

  const found = value();
  take(SPACE);
  need(at === text.length);
  return found;
}
