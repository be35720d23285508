/** Choices that are the same in every run with the same seed. */
export type Random = () => number

/** Mulberry32: numbers from 0 to below 1. */
export function randomFrom(seed: number): Random {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

export const below = (random: Random, limit: number): number => Math.floor(random() * limit)
export const oneOf = <T>(random: Random, choices: readonly T[]): T => choices[below(random, choices.length)]!
export const several = <T>(random: Random, most: number, make: () => T): T[] =>
  Array.from({ length: below(random, most + 1) }, make)
