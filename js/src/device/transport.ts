/** How a device talks to a server: a request goes out, a response comes back. */

import { TransportError } from "../shared/errors.js";

/** The most milliseconds for an answer. */
const SLOWEST = 300_000;
/** The most bytes of an answer. */
const MOST = 64 * 1024 * 1024;

export interface Request {
  method: "GET" | "POST";
  url: string;
  headers: Record<string, string>;
  body?: Uint8Array;
}

/** What comes back; retryAfter: the header Retry-After, if it came. */
export interface Response {
  status: number;
  retryAfter: string | null;
  body: Uint8Array;
}

/** Sends a request; rejects if no response came. */
export type Transport = (request: Request) => Promise<Response>;

/** Send a request with `fetch`; any status is a response, not an error. */
export const send: Transport = async ({ url, body, ...request }) => {
  const answer = await fetch(url, {
    ...request,
    body: (body as BodyInit | undefined) ?? null,
    // A redirect leads to an address that somebody else chose. Cookies and a cache's ETags would name
    // this device.
    redirect: "manual",
    credentials: "omit",
    cache: "no-store",
    referrerPolicy: "no-referrer",
    ...(typeof AbortSignal !== "undefined" && AbortSignal.timeout && { signal: AbortSignal.timeout(SLOWEST) }),
  });
  return { status: answer.status, retryAfter: answer.headers.get("retry-after"), body: await read(answer) };
};

async function read(answer: globalThis.Response): Promise<Uint8Array> {
  const reader = answer.body?.getReader();
  if (!reader) return new Uint8Array(await answer.arrayBuffer());
  let body = new Uint8Array(1 << 14);
  let length = 0;
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    const needed = length + part.value.length;
    if (needed > MOST) {
      await reader.cancel();
      throw new TransportError(`an answer must have at most ${MOST} bytes; got more`);
    }
    if (needed > body.length) {
      const larger = new Uint8Array(2 * needed);
      larger.set(body.subarray(0, length));
      body = larger;
    }
    body.set(part.value, length);
    length = needed;
  }
  return body.slice(0, length);
}

/** Return the JSON object in an answer, if it is one and not too large. */
export function objectIn(body: Uint8Array | undefined, most = 1024 * 1024): Record<string, unknown> | undefined {
  if (!body || body.length > most) return undefined;
  try {
    const found = JSON.parse(textOf(body));
    return typeof found === "object" && found && !Array.isArray(found) ? found : undefined;
  } catch {
    return undefined;
  }
}

/** Return the text that bytes are in UTF-8, or raise TypeError. */
export const textOf = (bytes: Uint8Array): string =>
  new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
