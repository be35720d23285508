/**
 * Loaded into a Postern of its own by `node --import` (`weighed`): at SIGIO, which it has no other use for, it collects
 * its garbage and writes what is left to standard error.
 */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

process.on('SIGIO', () => {
  collectGarbage()
  const { heapUsed, external } = process.memoryUsage()
  process.stderr.write(`heap ${heapUsed + external}\n`)
})
