/**
 * Releases from a server that nobody has to trust: verified, and never older than before.
 *
 * A newer release must continue the one in use: the chain of hashes has to lead from one to the other.
 * No request carries anything that somebody else chose: the device asks for the chain in blocks that
 * are the same for everyone.
 */

import { hex, unhex } from "../shared/bytes.js";
import {
  DeviceError,
  ForkError,
  must,
  NoSuchExperiment,
  SignatureError,
  TransportError,
  WireError,
} from "../shared/errors.js";
import { fingerprint } from "../shared/experiment.js";
import { wrong } from "../shared/check.js";
import { type Release, releaseFromJson } from "../shared/release.js";
import { BLOCK, blockFromJson, blockOf, firstLink, keyId, messageOf, nextLink, signedFromJson } from "../shared/signed.js";
import { repr } from "../shared/values.js";
import { isKey, verify } from "./signature.js";
import { objectIn, type Request, type Response, textOf } from "./transport.js";

const LARGEST_BLOCK = 64 * 1024;
const MOST_BLOCKS = 4096;

/** A release with a signature by a trusted key; link: its place in the chain. */
export interface Verified {
  release: Release;
  link: string;
  before: string;
  /** The signed release in its one form. */
  document: string;
}

export class Releases {
  readonly server: string;
  /** The last answer of the server, if one came. */
  answer: Response | undefined;
  readonly #keys: Map<string, Uint8Array>;

  constructor(
    server: string,
    readonly experiment: string,
    keys: readonly string[] | string,
    readonly ask: (request: Request) => Promise<Response | undefined>,
  ) {
    if (!/^https?:\/\//.test(server)) {
      throw new TransportError("a server's address must begin with http:// or https://");
    }
    if (!/^[0-9a-f]{64}$/.test(experiment)) {
      throw wrong("experiment", "be the 64 hexadecimal digits of its fingerprint", repr(experiment));
    }
    this.server = server.replace(/\/+$/, "");
    const listed = typeof keys === "string" ? [keys] : keys;
    if (!listed.length) throw new SignatureError("keys must hold at least one public key; got none");
    this.#keys = new Map(listed.map(readKey).map((key) => [keyId(key), key]));
  }

  /**
   * Ask for the current release; return it if it continues what was followed so far, and undefined for
   * an older release: a cache may have one.
   */
  async newest(followed: { version: number; link: string } | undefined): Promise<Verified | undefined> {
    const found = this.verify(await this.#ask("releases/current"));
    const now = found.release.version;
    if (!followed) {
      if (now === 1 && found.before !== hex(firstLink(this.experiment))) {
        throw new ForkError("the first release must begin the chain; it names another history");
      }
      return found;
    }
    const before = followed.version;
    if (now < before) return undefined;
    if (now === before) {
      if (found.link === followed.link) return found;
      throw new ForkError(
        `there must be one release ${now}; the server sent a second one, with another text or another history:` +
          " the last good one is kept",
      );
    }
    const hashes = await this.#hashes(before, now - 1);
    if (hex(hashes.reduce(nextLink, unhex(followed.link))) !== found.before) {
      throw new ForkError(
        `release ${now} must continue release ${before}, which is in use; its history is another one: release` +
          ` ${before} is kept`,
      );
    }
    return found;
  }

  /** Ask for the hashes of the releases between two. */
  async #hashes(after: number, until: number): Promise<Uint8Array[]> {
    if (until <= after) return [];
    const [first, last] = [blockOf(after + 1), blockOf(until)];
    if (last - first >= MOST_BLOCKS) {
      throw new ForkError(must("a newer release", `take at most ${MOST_BLOCKS * BLOCK} releases at once`, until - after));
    }
    const hashes: Uint8Array[] = [];
    for (let block = first; block <= last; block++) {
      const body = await this.#ask(`chain/${block}`, LARGEST_BLOCK);
      try {
        hashes.push(...blockFromJson(body));
      } catch (error) {
        throw new ForkError(`the server must send its chain of releases; ${(error as Error).message}`);
      }
      const come = first * BLOCK + hashes.length;
      if (come < Math.min(until, (block + 1) * BLOCK)) {
        // Perhaps a cache or another worker is behind: ask again later.
        throw new TransportError(must("the chain", `go up to release ${until}`, `release ${come} only`));
      }
    }
    return hashes.slice(after - first * BLOCK, until - first * BLOCK);
  }

  async #ask(what: string, most = Infinity): Promise<string> {
    const url = `${this.server}/experiments/${this.experiment}/${what}`;
    const response = await this.ask({ method: "GET", url, headers: { Accept: "application/json" } });
    this.answer = response;
    if (!response) throw new TransportError("the server must be reachable; no answer came");
    const { status, body } = response;
    if (status === 404 && objectIn(body, LARGEST_BLOCK)?.reason === "no such experiment") {
      const came = "the answer that there is none";
      throw new NoSuchExperiment(must("the server", `have experiment ${this.experiment}`, came));
    }
    if (status !== 200) throw new TransportError(must("the server", `send ${what}`, `status ${status}`));
    if (body.length > most) throw new TransportError(`an answer must have at most ${most} bytes; got more`);
    try {
      return textOf(body);
    } catch {
      return "";
    }
  }

  /** Return the release, or raise; no part of an unsigned release is used. */
  verify(document: string): Verified {
    let signed: ReturnType<typeof signedFromJson>;
    try {
      signed = signedFromJson(document);
    } catch (error) {
      const newer = error instanceof WireError && error.reason === "newer wire version";
      if (newer || claimsToBeSigned(document)) throw error;
      // For example the login page of a hotel network, which answers every request.
      throw new TransportError("the server must send a signed release; got something else");
    }
    const { key, signature, text, link, before } = signed;
    const trusted = this.#keys.get(key);
    if (!trusted) {
      const rule = `be signed by one of ${repr([...this.#keys.keys()].sort())}`;
      throw new SignatureError(must("a release", rule, key));
    }
    if (!verify(trusted, signature, messageOf(signed))) {
      throw new SignatureError(`a release must carry a good signature; that of ${key} is not`);
    }
    const release = releaseFromJson(text);
    const came = fingerprint(release.experiment);
    if (came !== this.experiment) throw new DeviceError(must("a release", `be of experiment ${this.experiment}`, came));
    return { release, link: hex(link), before: hex(before), document };
  }
}

function readKey(digits: string): Uint8Array {
  const key = /^[0-9a-fA-F]{64}$/.test(digits) ? unhex(digits) : new Uint8Array();
  if (!isKey(key)) {
    const rule = "be the 64 hexadecimal digits of an Ed25519 public key";
    throw new SignatureError(must("a key", rule, repr(digits)));
  }
  return key;
}

function claimsToBeSigned(document: string): boolean {
  try {
    return JSON.parse(document)?.kind === "signed release";
  } catch {
    return false;
  }
}
