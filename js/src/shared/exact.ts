/** Exact arithmetic with doubles: as whole multiples of 2^-1074, and quotients rounded once. */

/** Every double is a whole multiple of 2^-GRID. */
export const GRID = 1074n;

const view = new DataView(new ArrayBuffer(8));

/** Return a finite double times 2^GRID, exactly. */
export function onGrid(value: number): bigint {
  view.setFloat64(0, value);
  const bits = view.getBigUint64(0);
  const exponent = (bits >> 52n) & 0x7ffn;
  const fraction = bits & 0xfffffffffffffn;
  const size = exponent ? (fraction | (1n << 52n)) << (exponent - 1n) : fraction;
  return bits >> 63n ? -size : size;
}

export const bitLength = (number: bigint): number =>
  number ? number.toString(16).length * 4 - Math.clz32(parseInt(number.toString(16)[0] as string, 16)) + 28 : 0;

/** Return the double next to a quotient of positive numbers, with a single rounding. */
export function quotient(numerator: bigint, denominator: bigint): number {
  if (!numerator) return 0;
  const shift = 66 - (bitLength(numerator) - bitLength(denominator));
  const [above, below] = shift > 0 ? [BigInt(shift), 0n] : [0n, BigInt(-shift)];
  const divisor = denominator << below;
  const scaled = numerator << above;
  const whole = scaled / divisor;
  // What is left over counts as a last bit, so that the one rounding is right.
  return Number((whole << 1n) | BigInt(scaled % divisor > 0n)) * 2 ** (-shift - 1);
}

/** Return the sum of doubles, rounded once, as Python's `math.fsum`. */
export function exactSum(values: readonly number[]): number {
  const sum = values.reduce((total, value) => total + onGrid(value), 0n);
  return sum < 0n ? -quotient(-sum, 1n << GRID) : quotient(sum, 1n << GRID);
}

/** Say whether a sum is 1, as Python's `math.isclose` with 1e-9. */
export const isOne = (sum: number): boolean =>
  Math.abs(sum - 1) <= Math.max(1e-9 * Math.max(Math.abs(sum), 1), 1e-9);

/** Round to a whole number, halves to the even one, as Python's `round`. */
export function roundEven(value: number): number {
  const near = Math.round(value);
  return near - value === 0.5 && near % 2 ? near - 1 : near;
}
