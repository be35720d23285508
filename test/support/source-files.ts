import { readdirSync } from 'node:fs'
import { join } from 'node:path'

/** Every TypeScript file below a folder. */
export const sourceFiles = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort()
