/**
 * JSON as text. What many operations have alike is written once and then copied, which costs less than objects that
 * `JSON.stringify` writes again for each of them.
 */
export type JsonText = string

/** An object with these members. */
export function objectText(members: Iterable<readonly [name: string, value: JsonText]>): JsonText {
  let text = ''
  for (const [name, value] of members) text += `${text === '' ? '' : ','}${JSON.stringify(name)}:${value}`
  return `{${text}}`
}

/** One object with the members of both, neither of which is empty. No name may stand in both. */
export const mergedText = (one: JsonText, other: JsonText): JsonText =>
  `${one.slice(0, -1)},${other.slice(1)}`
