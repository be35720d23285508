/** Whether a file of the trail is still the one that this process writes (C12.4.3). */

/** What tells one file of a machine from all others, as long as it is open. */
export interface FileIdentity {
  readonly dev: number
  readonly ino: number
}

/** A file that is being written was removed, moved, cut or changed by somebody else. */
export class DisplacedError extends Error {
  override readonly name = 'DisplacedError'

  constructor(path: string) {
    super(`${path} was removed, moved or changed while it was written`)
  }
}

/** Whether what was found at a path is that file, and has that length. */
export const isSameFile = (
  found: (FileIdentity & { readonly size: number }) | undefined,
  { dev, ino }: FileIdentity,
  length: number,
): boolean => found?.ino === ino && found.dev === dev && found.size === length
