/**
 * What went wrong in a worker, as the channel carries it. Name and code are what `serve` tells an operator's trouble
 * (a port that is taken, a store that cannot be opened) from a defect by: without them it would print a stack.
 */
export interface ToldError {
  readonly name: string
  readonly message: string
  /** Of the system's errors: `EADDRINUSE`. */
  readonly code: string | undefined
}

export function tellError(thrown: unknown): ToldError {
  if (!(thrown instanceof Error)) return { name: 'Error', message: String(thrown), code: undefined }
  const code = 'code' in thrown && typeof thrown.code === 'string' ? thrown.code : undefined
  return { name: thrown.name, message: thrown.message, code }
}

export const errorOf = ({ name, message, code }: ToldError): Error =>
  Object.assign(new Error(message), { name, ...(code !== undefined && { code }) })
