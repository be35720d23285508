import { parentPort, workerData } from 'node:worker_threads'
import { serveModule, type ThreadData } from './serve-module.ts'

// Nobody listens there, and the process would have to read everything that a library writes to it.
parentPort?.close()
const { plan, port } = workerData as ThreadData
serveModule(port, plan)
