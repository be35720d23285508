import { getCompileCacheDir } from 'node:module'
import { dirname, extname } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * The URL of a program in the caller's folder, with the caller's extension: `.ts` in the sources, `.js` when compiled.
 * The compiler rewrites imports, but not names in strings.
 * @param url `import.meta.url` of the caller
 * @param name without extension
 */
export const programBeside = (url: string, name: string): URL =>
  new URL(`./${name}${extname(fileURLToPath(url))}`, url)

/**
 * The environment of a thread, or of a process that needs nothing else. It shares the compile cache of this process only
 * through this variable, and starts in 25 ms instead of 55 then. Node adds the last part of the path (its version) itself.
 */
export function threadEnvironment(): NodeJS.ProcessEnv {
  const folder = getCompileCacheDir()
  return folder === undefined ? {} : { NODE_COMPILE_CACHE: dirname(folder) }
}
