/**
 * The values of JSON as Python has them: whole and real numbers differ, and objects keep their order.
 *
 * A whole number is a `number`, or a `bigint` beyond 2^53. A real number is a `Real`. An object is a
 * `Map`: plain objects would move keys such as "10" to the front.
 */

/** A real number of a document: `1.0` is one, `1` is not. */
export class Real {
  constructor(readonly value: number) {}
}

export type Value = null | boolean | number | bigint | Real | string | Value[] | Table;
export type Table = Map<string, Value>;

export const real = (value: number): Real => new Real(value);
/** Make a table of an object's entries; what is undefined is left out. */
export const table = (entries: Record<string, Value | undefined>): Table =>
  new Map(Object.entries(entries).filter(([, value]) => value !== undefined) as [string, Value][]);

export const isWhole = (value: unknown): value is number => typeof value === "number";
export const isText = (value: unknown): value is string => typeof value === "string";

/** Write a double as Python's `repr`: the fewest digits, and always a point or an exponent. */
export function realText(value: number): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "nan" : value > 0 ? "inf" : "-inf";
  if (Object.is(value, -0)) return "-0.0";
  const [, sign, first, rest = "", exponent] = /^(-?)(\d)(?:\.(\d+))?e(.+)$/.exec(
    value.toExponential(),
  ) as unknown as [string, string, string, string | undefined, string];
  const power = +exponent;
  const digits = first + rest;
  if (power < -4 || power >= 16) {
    const tail = rest && `.${rest}`;
    return `${sign}${first}${tail}e${power < 0 ? "-" : "+"}${`${Math.abs(power)}`.padStart(2, "0")}`;
  }
  if (power < 0) return `${sign}0.${"0".repeat(-power - 1)}${digits}`;
  const whole = digits.slice(0, power + 1).padEnd(power + 1, "0");
  return `${sign}${whole}.${digits.slice(power + 1) || "0"}`;
}

/** Write a number as Python's format "g" does: six digits at most. */
export function shortText(value: number): string {
  if (!Number.isFinite(value)) return realText(value);
  const [digits, exponent] = value.toExponential(5).split("e") as [string, string];
  const power = +exponent;
  const trim = (text: string) => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);
  if (power >= -4 && power < 6) return trim(value.toFixed(5 - power));
  return `${trim(digits)}e${power < 0 ? "-" : "+"}${`${Math.abs(power)}`.padStart(2, "0")}`;
}

const hexadecimal = (code: number, digits: number) => code.toString(16).padStart(digits, "0");
const ESCAPES: Record<string, string> = { "\b": "b", "\t": "t", "\n": "n", "\f": "f", "\r": "r" };

/** Write text as canonical JSON does: in ASCII. */
const textJson = (text: string): string =>
  `"${text.replace(/["\\]|[^ -~]/g, (unit) =>
    unit === '"' || unit === "\\"
      ? `\\${unit}`
      : `\\${ESCAPES[unit] ?? `u${hexadecimal(unit.charCodeAt(0), 4)}`}`,
  )}"`;

/** Return the canonical JSON of a value, for fingerprints and for the wire. */
export function canonical(value: Value): string {
  if (value instanceof Real) return realText(value.value);
  if (isText(value)) return textJson(value);
  if (Array.isArray(value)) return `[${value.map(canonical)}]`;
  if (value instanceof Map) {
    const entries = [...value].sort(([one], [other]) => (one < other ? -1 : 1));
    return `{${entries.map(([key, each]) => `${textJson(key)}:${canonical(each)}`)}}`;
  }
  return `${value}`;
}

/** Whether Python would print a text as it is; control characters could forge lines of a receipt. */
export const isPrintable = (text: string): boolean => !/(?! )[\p{C}\p{Z}]/u.test(text);

const textRepr = (text: string): string => {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
  const inside = Array.from(text, (letter) => {
    const code = letter.codePointAt(0) as number;
    if (letter === quote || letter === "\\") return `\\${letter}`;
    if (/[\t\n\r]/.test(letter)) return `\\${ESCAPES[letter]}`;
    if (isPrintable(letter)) return letter;
    if (code < 256) return `\\x${hexadecimal(code, 2)}`;
    return code < 65536 ? `\\u${hexadecimal(code, 4)}` : `\\U${hexadecimal(code, 8)}`;
  });
  return quote + inside.join("") + quote;
};

/** Write a value as Python's `repr`, so that messages have the same text. */
export function repr(value: Value | undefined): string {
  if (value == null) return "None";
  if (value instanceof Real) return realText(value.value);
  if (isText(value)) return textRepr(value);
  if (Array.isArray(value)) return `[${value.map(repr).join(", ")}]`;
  if (value instanceof Map) {
    return `{${[...value].map(([key, each]) => `${textRepr(key)}: ${repr(each)}`).join(", ")}}`;
  }
  return typeof value === "boolean" ? (value ? "True" : "False") : `${value}`;
}

/** Write a tuple as Python does. */
export const tupleText = (values: readonly Value[]): string =>
  `(${values.map(repr).join(", ")}${values.length === 1 ? "," : ""})`;

/** Return what Python calls the type of a value. */
export function typeName(value: unknown): string {
  if (value == null) return "NoneType";
  if (Array.isArray(value)) return "list";
  if (value instanceof Real) return "float";
  const names: Record<string, string> = {
    boolean: "bool",
    number: "int",
    bigint: "int",
    string: "str",
    object: "dict",
  };
  return names[typeof value] ?? typeof value;
}
