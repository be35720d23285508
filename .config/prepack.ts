/**
 * Makes `dist`, which is published: JavaScript with its declarations, because Node strips no types below node_modules,
 * and the files that the code reads from its own folder.
 */
import { execFileSync } from 'node:child_process'
import { cpSync, rmSync, statSync } from 'node:fs'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'

const at = (path: string): string => fileURLToPath(new URL(`../${path}`, import.meta.url))
const LEFT_OUT: ReadonlySet<string> = new Set(['.ts', '.md'])

rmSync(at('dist'), { recursive: true, force: true })
execFileSync(
  process.execPath,
  [at('node_modules/typescript/bin/tsc'), '--project', at('.config/tsconfig.publish.json')],
  {
    stdio: 'inherit',
  },
)
cpSync(at('src'), at('dist'), {
  recursive: true,
  filter: (source) => statSync(source).isDirectory() || !LEFT_OUT.has(extname(source)),
})
