/** The message, for operators: it may name files. */
export const messageOf = (thrown: unknown): string =>
  thrown instanceof Error ? thrown.message : String(thrown)

/** Whether it is the system's error with this code: `ENOENT`, `EEXIST`, … */
export const hasCode = (thrown: unknown, code: string): boolean =>
  thrown instanceof Error && 'code' in thrown && thrown.code === code

const WORDS: Readonly<Record<string, string>> = {
  EACCES: 'this user has no right to it',
  ECONNREFUSED: 'nothing listens there',
  EISDIR: 'it is a folder',
  ENOENT: 'there is no such file or folder',
  ENOSPC: 'the disk is full',
  ENOTDIR: 'a part of the path is no folder',
  EROFS: 'its file system can only be read',
}

/** The reason that a short text for operators has in brackets: `ENOENT: there is no such file or folder`, or the message. */
export function reasonInWords(thrown: unknown): string {
  if (!(thrown instanceof Error && 'code' in thrown)) return messageOf(thrown)
  const code = String(thrown.code)
  return WORDS[code] === undefined ? code : `${code}: ${WORDS[code]}`
}
