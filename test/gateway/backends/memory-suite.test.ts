import { readFile } from 'node:fs/promises'
import { MemoryBackend } from '../../../src/gateway/backends/memory/memory.ts'
import { parseMemoryFile } from '../../../src/gateway/backends/memory/file.ts'
import { backendContract } from '../../support/suites/backend.contract.ts'

const DATA = new URL('../../../config/demo-data.json', import.meta.url)

backendContract('memory', async () => new MemoryBackend('sample', parseMemoryFile(await readFile(DATA))))
