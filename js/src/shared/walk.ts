/**
 * Which bin a point is in, found with the same steps for every point.
 *
 * Every walk has as many steps as the deepest leaf is deep: a leaf leads to itself. What a step needs
 * is worked out for the whole release at once, never for the bin of one person.
 */

import { position } from "./partition.js";
import { type BinPolicy, once, type Release } from "./release.js";

/** One node of the tree, and what a step from it needs. */
interface Node {
  /** The axis along which it is split; -1 for a leaf, which looks at the first. */
  axis: number;
  look: number;
  /** Where it is split; infinity for a leaf and for sets of levels. */
  middle: number;
  /** How many levels its axis has, if it is split by levels, and which of them go up. */
  levels: number;
  upper: Uint8Array;
  /** Its lower part; the upper part is the next node. A leaf is its own child. */
  child: number;
  /** The middles of its lower and of its upper half along the axis. */
  halves: [number, number];
  policy: BinPolicy;
}

interface Walk {
  nodes: Node[];
  root: number[];
  steps: number;
}

/** Follow a point to its leaf. each: called at every step, with the node and the side. */
function follow({ nodes, steps }: Walk, point: number[], each: (node: Node, side: number) => void): Node {
  let node = nodes[0] as Node;
  for (let step = 0; step < steps; step++) {
    const place = point[node.look] as number;
    const level = Math.trunc(place * node.levels);
    const side = (node.upper[level] as number) | Number(place >= node.middle);
    each(node, side);
    node = nodes[node.child + side] as Node;
  }
  return node;
}

/** Return the policy of the leaf that holds a point of [0, 1]^d. */
export const findBin = (release: Release, point: number[]): BinPolicy =>
  follow(walkOf(release), point, () => {}).policy;

/** Return the middle, along one axis, of the leaf that holds a point. */
export function middleOfLeaf(release: Release, point: number[], axis: number): number {
  const walk = walkOf(release);
  let found = walk.root[axis] as number;
  follow(walk, point, (node, side) => {
    found = [found, node.halves[side] as number][Number(node.axis === axis)] as number;
  });
  return found;
}

const walkOf = (release: Release): Walk => once(release, "walk", () => compile(release));

/** Work out every step of every walk. */
function compile({ partition, bins }: Release): Walk {
  const paths = [""];
  const edges: Map<number, [number, number]>[] = [new Map()];
  const policies = new Map(bins.map((policy) => [policy.path, policy]));
  const nodes: Node[] = [];
  for (let node = 0; node < paths.length; node++) {
    const path = paths[node] as string;
    const axis = partition.cuts.get(path) ?? -1;
    const above = partition.sets.get(path);
    const own = edges[node] as Map<number, [number, number]>;
    const [low, high] = own.get(axis) ?? [0, 1];
    const half = (low + high) / 2;
    const look = Math.max(axis, 0);
    const levels = above ? (partition.levels[axis] as number) : 0;
    // The last level has one place more, for the position 1.
    const upper = Uint8Array.from({ length: levels + 1 }, (_, level) =>
      Number(above?.includes(Math.min(level, levels - 1)) ?? false),
    );
    nodes.push({
      axis,
      look,
      middle: axis < 0 || above ? Infinity : position(partition, look, half),
      levels,
      upper,
      child: axis < 0 ? node : paths.length,
      halves: [position(partition, look, (low + half) / 2), position(partition, look, (half + high) / 2)],
      policy: policies.get(path) ?? (bins[0] as BinPolicy),
    });
    if (axis >= 0) {
      paths.push(`${path}0`, `${path}1`);
      const parts: [number, number][] = above
        ? [
            [low, high],
            [low, high],
          ]
        : [
            [low, half],
            [half, high],
          ];
      for (const part of parts) edges.push(new Map(own).set(axis, part));
    }
  }
  const steps = Math.max(...paths.map((path) => path.length));
  return { nodes, root: partition.levels.map((_, axis) => position(partition, axis, 0.5)), steps };
}
