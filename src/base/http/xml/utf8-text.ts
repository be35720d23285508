/** A text in bytes of UTF-8: those of a document, or of its own. They can be read four at a time. */
export interface Utf8Text {
  readonly bytes: DataView
  readonly from: number
  readonly to: number
}

export const dataViewOf = ({ buffer, byteOffset, byteLength }: Uint8Array): DataView =>
  new DataView(buffer, byteOffset, byteLength)

const encoder = new TextEncoder()

/** A text in memory of its own: a short buffer would hold 64 KiB that it shares with others. */
export function utf8(text: string): Utf8Text {
  // Four bytes at a time are up to three more than the text has.
  const bytes = dataViewOf(encoder.encode(`${text}   `))
  return { bytes, from: 0, to: bytes.byteLength - 3 }
}
