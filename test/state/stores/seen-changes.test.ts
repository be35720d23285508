import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { readSeen, SeenChanges } from '../../../src/state/stores/feed/feed-progress.ts'

it('C11.7.3 what a node has seen is kept when it stops while it writes, and nothing is written afterwards', async () => {
  const data = mkdtempSync(join(tmpdir(), 'postern-seen-'))
  onTestFinished(() => rmSync(data, { recursive: true }))
  const due: (() => void)[] = []
  const notes: string[] = []
  let known = { sequence: 1, doubted: false }
  const seen = new SeenChanges({
    ...{ data, seen: () => known },
    recorder: { note: (_level, event) => void notes.push(event) },
    after: (_ms, work) => {
      due.push(work)
      return () => undefined
    },
  })
  due.pop()?.()
  known = { sequence: 2, doubted: true }
  await seen.stop()
  expect(readSeen(data)).toEqual({ sequence: 2, doubted: true })
  expect({ notes, due }).toEqual({ notes: [], due: [] })
})
