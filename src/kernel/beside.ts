import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * The URL of a program in the caller's folder, with the caller's extension: `.ts` in the sources, `.js` when compiled.
 * The compiler rewrites imports, but not names in strings.
 * @param url `import.meta.url` of the caller
 * @param name without extension
 */
export const programBeside = (url: string, name: string): URL =>
  new URL(`./${name}${extname(fileURLToPath(url))}`, url)
