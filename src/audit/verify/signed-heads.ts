import type { SignedHead } from '../manifest/manifest.ts'

/** A head, and where it was signed. */
export interface HeadAt {
  readonly seq: number
  readonly hash: string
  /** The line of the manifest, and its time. */
  readonly line: number
  readonly time: string
  readonly found: boolean
}

/** Heads of one writer that are kept. Of more every second one is dropped: what is found is then placed less exactly. */
const MOST = 4096

/** The heads of one writer that were signed, in the order of their `seq`. */
export class WriterHeads {
  #heads: HeadAt[] = []

  add(head: HeadAt): void {
    const last = this.#heads.at(-1)
    if (last?.seq === head.seq && last.hash === head.hash) return
    this.#heads.push(head)
    if (this.#heads.length > MOST)
      this.#heads = this.#heads.filter((_, at, all) => (all.length - at) % 2 === 1)
  }

  /** Of a head with a lower `seq` than one before it, both are here. */
  get inOrder(): readonly HeadAt[] {
    return this.#heads.toSorted((a, b) => a.seq - b.seq)
  }
}

/** The heads of all writers of a manifest. */
export class SignedHeads {
  readonly byWriter = new Map<string, WriterHeads>()

  add({ writer, seq, hash, found }: SignedHead, line: number, time: string): void {
    let heads = this.byWriter.get(writer)
    if (heads === undefined) this.byWriter.set(writer, (heads = new WriterHeads()))
    heads.add({ seq, hash, line, time, found: found === true })
  }

  of(writer: string): readonly HeadAt[] {
    return this.byWriter.get(writer)?.inOrder ?? []
  }
}
