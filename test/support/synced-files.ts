import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { onTestFinished, vi } from 'vitest'

/** The names of files by their paths, each when it is synced through a handle of its own, until the test ends. */
export function syncedFiles(nameOf: (path: string) => string): string[] {
  const synced: string[] = []
  const { open } = fs.promises
  const spy = vi.spyOn(fs.promises, 'open').mockImplementation(async (path, ...more) => {
    const handle = await open(path, ...more)
    const datasync = handle.datasync.bind(handle)
    handle.datasync = () => {
      synced.push(nameOf(String(path)))
      return datasync()
    }
    return handle
  })
  syncBuiltinESMExports()
  onTestFinished(() => {
    spy.mockRestore()
    syncBuiltinESMExports()
  })
  return synced
}
