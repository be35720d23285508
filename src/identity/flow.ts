import type { Step } from './endpoint.ts'

/**
 * Steps in a row, each one taking what the one before gives. A step put before the one that finds out what it needs
 * does not compile: that is how the order of C6.1.0 is kept.
 */
export function flow<A, B>(ab: Step<A, B>): Step<A, B>
export function flow<A, B, C>(ab: Step<A, B>, bc: Step<B, C>): Step<A, C>
export function flow<A, B, C, D>(ab: Step<A, B>, bc: Step<B, C>, cd: Step<C, D>): Step<A, D>
export function flow<A, B, C, D, E>(
  ab: Step<A, B>,
  bc: Step<B, C>,
  cd: Step<C, D>,
  de: Step<D, E>,
): Step<A, E>
export function flow<A, B, C, D, E, F>(
  ab: Step<A, B>,
  bc: Step<B, C>,
  cd: Step<C, D>,
  de: Step<D, E>,
  ef: Step<E, F>,
): Step<A, F>
export function flow<A, B, C, D, E, F, G>(
  ab: Step<A, B>,
  bc: Step<B, C>,
  cd: Step<C, D>,
  de: Step<D, E>,
  ef: Step<E, F>,
  fg: Step<F, G>,
): Step<A, G>
export function flow(...steps: readonly Step<never, unknown>[]): Step<never, unknown> {
  return async (context, room) => {
    let known: unknown = context
    for (const step of steps) known = await step(known as never, room)
    return known
  }
}
