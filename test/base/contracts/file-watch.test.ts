import { renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { FileWatch } from '../../../src/base/contracts/processes/file-watch.ts'
import { configFiles } from '../../support/config-files.ts'
import { keepNotes } from '../../support/notes.ts'

/** Watches files of a folder; `next` resolves at the next change that is told. */
function watchFiles(contents: Record<string, string>, watched: readonly string[]) {
  const at = configFiles(contents)
  const notes = keepNotes()
  let changes = 0
  let wake: () => void = () => undefined
  const watch = new FileWatch(notes, () => {
    changes += 1
    wake()
  })
  onTestFinished(() => watch.close())
  watch.watch(new Set(watched.map(at)))
  const next = (): Promise<void> =>
    new Promise((resolve) => {
      wake = resolve
    })
  return { at, watch, notes, next, told: () => changes }
}

describe('watched files', () => {
  it('tells a file that is written, replaced, removed or made', async () => {
    const { at, next, told } = watchFiles({ 'a.yaml': 'a', 'b.yaml': 'b' }, ['a.yaml', 'later.yaml'])
    const acts = [
      () => writeFileSync(at('a.yaml'), 'other'),
      () => renameSync(at('b.yaml'), at('a.yaml')),
      () => rmSync(at('a.yaml')),
      () => writeFileSync(at('later.yaml'), 'new'),
    ]
    for (const act of acts) {
      const change = next()
      act()
      await change
    }
    expect(told()).toBe(4)
  })

  it('tells a symbolic link that points elsewhere, which is how a mounted configuration changes', async () => {
    const { at, next, watch } = watchFiles({ 'one/a.yaml': '1', 'two/a.yaml': '22' }, [])
    symlinkSync(at('one'), at('now'))
    watch.watch(new Set([at('now/a.yaml'), at('now')]))
    const change = next()
    symlinkSync(at('two'), at('next'))
    renameSync(at('next'), at('now'))
    await change
  })

  it('says nothing of a neighbour, and tells several writes once', async () => {
    const { at, next, told } = watchFiles({ 'a.yaml': 'a' }, ['a.yaml'])
    const change = next()
    writeFileSync(at('neighbour'), 'x')
    for (let write = 0; write < 5; write++) writeFileSync(at('a.yaml'), 'a'.repeat(write + 2))
    await change
    expect(told()).toBe(1)
  })

  it('tells a change in a folder that is never silent', async () => {
    const { at, next, told } = watchFiles({ 'a.yaml': 'a' }, ['a.yaml'])
    let count = 0
    const noise = setInterval(() => writeFileSync(at('neighbour'), String((count += 1))), 20)
    onTestFinished(() => clearInterval(noise))
    const change = next()
    writeFileSync(at('a.yaml'), 'other')
    await change
    expect(told()).toBe(1)
  })

  it('goes on where a folder cannot be watched, and says so', () => {
    const { notes, watch, at } = watchFiles({}, [])
    watch.watch(new Set([at('nowhere/a.yaml')]))
    expect(notes.events).toEqual(['folder_not_watched'])
  })
})
