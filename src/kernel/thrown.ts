/** What is caught may be anything: how the rest of the code reads it. */

/** The message, for operators: it may name files. */
export const messageOf = (thrown: unknown): string =>
  thrown instanceof Error ? thrown.message : String(thrown)

/** Whether it is the system's error with this code: `ENOENT`, `EEXIST`, … */
export const hasCode = (thrown: unknown, code: string): boolean =>
  thrown instanceof Error && 'code' in thrown && thrown.code === code

/** What a short text names in brackets: the code, such as ENOENT, or else the message. */
export const codeOrMessage = (thrown: unknown): string =>
  thrown instanceof Error && 'code' in thrown ? String(thrown.code) : messageOf(thrown)
