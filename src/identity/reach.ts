import { Fault } from '../kernel/faults.ts'

/** Waits for the directory; where it can't be reached, the answer is 503 (C6.1.4). */
export async function reach<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer
  } catch (cause) {
    throw cause instanceof Fault ? cause : new Fault('identity_unavailable', { cause })
  }
}
