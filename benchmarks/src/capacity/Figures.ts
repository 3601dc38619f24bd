/**
 * What the capacity model knows from measurements. Each figure has its source; the
 * machine of all is an AMD EPYC with two cores and 24 GiB, Node 20.20.2,
 * PostgreSQL 18 with `fsync` on, beside whatever made the load.
 */

export interface Figure {
  readonly value: number
  readonly source: string
}

const observed =
  "processor time and files of the server's and PostgreSQL's processes; 400 connections over TCP, QoS 1, one report at a time with five values, twelve seconds"

export const figures = {
  /** Microseconds of a core of the server for a report with five values, stored and acknowledged. */
  serverReportMicros: { value: 91, source: observed },
  /** Microseconds of a core of the server for each value beyond five: packing it into the history. */
  serverValueMicros: { value: 1.7, source: "benchmarks/README.md: a packed value" },
  /** Microseconds of a core of PostgreSQL for a report with five values. */
  databaseReportMicros: { value: 29, source: observed },
  /** Bytes that PostgreSQL writes for a report with five values: its log, and pages. */
  databaseWrittenBytes: {
    value: 2657,
    source: `${observed}; on a fresh database, so with many whole pages in the log`
  },
  /** Bytes of the feed for a report with five values, with everything else that is stored at once. */
  feedReportBytes: { value: 340, source: observed },
  /** Bytes of the history for a value, packed, with indexes. */
  historyValueBytes: { value: 8.4, source: "npm run bench -- history-bytes" },
  /** Bytes of a device in PostgreSQL that has not reported yet, with indexes. */
  deviceBytes: { value: 1004, source: "files of PostgreSQL after 50,000 devices in batches" },
  /** Resident bytes of the server for an idle connection with three subscriptions. */
  connectionBytes: { value: 20_222, source: "npm run bench -- mqtt-memory, over TCP" },
  /** Resident bytes of a server process that is busy, without connections to speak of. */
  processBytes: { value: 270e6, source: "benchmarks/README.md: memory beside the attack `nothing`" },
  /** Microseconds of a core of the server for a connection over TCP. */
  connectTcpMicros: { value: 110, source: "benchmarks/README.md: TCP connections" },
  /** Microseconds of a core of the server for a connection over TLS. */
  connectTlsMicros: {
    value: 1900,
    source: "npm run bench -- mqtt-connect: 525 a second on two cores, of which the clients use about half"
  },
  /** Microseconds of a core of PostgreSQL for a device that comes online. */
  databaseConnectMicros: {
    value: 550,
    source: "processor time of PostgreSQL; the first 400 connections of a fresh server"
  },
  /** Microseconds of a core of the server for a command, from the request to the reply of the device. */
  serverCommandMicros: {
    value: 385,
    source:
      "npm run bench -- downlink: 3,468 a second on two cores, two thirds of them assumed to be the server's and the load's"
  },
  /** Microseconds of a core of PostgreSQL for a command. */
  databaseCommandMicros: { value: 192, source: "npm run bench -- downlink: the other third" }
} as const satisfies Readonly<Record<string, Figure>>
