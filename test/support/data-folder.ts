import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { atEnd } from './shared.ts'

/** A folder of its own for one test, removed after it. Register it before what is to be closed before it. */
export async function dataFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'postern-data-'))
  atEnd(() => rm(folder, { recursive: true, force: true }))
  return folder
}
