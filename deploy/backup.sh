#!/bin/sh
# Copies store, keys and audit trail of a Postern into a new folder below FOLDER, while it serves: backup.sh FOLDER
# POSTERN_DATA is the data folder, and POSTERN_CONFIG names the configuration, as for `postern serve`. POSTERN is the
# command, if it is not the one beside this file.
set -eu
umask 077
folder=${1:?'a folder for the copies is needed: backup.sh /var/backups/postern'}
data=${POSTERN_DATA:?'POSTERN_DATA is needed: the data folder'}
postern=${POSTERN:-node "$(dirname "$0")/../dist/main.js"}
copy=$folder/$(date -u +%Y-%m-%dT%H%M%S)

mkdir -p "$copy.part"
# The store first: whatever it holds is then in the trail that is copied behind it.
$postern backup "$copy.part/postern.sqlite"
# Its manifest before its records: what it has signed is in the copy then.
cp -a "$data/audit/manifest.jsonl" "$copy.part/"
cp -a "$data/keys" "$data/audit" "$copy.part/"
mv "$copy.part/manifest.jsonl" "$copy.part/audit/"
mv "$copy.part" "$copy"
find "$folder" -mindepth 1 -maxdepth 1 -type d -name '20*T*' -mtime +14 -exec rm -rf {} +
echo "$copy"
