-- The questions of QUERIES.md in DataFusion: those whose statements differ there, each below its heading. The others are those of the page.
-- DataFusion matches no `*` in directories: a table for each build.

-- Setup
create external table calls_1 stored as parquet partitioned by (date) location 'tables/build=1/calls/';
create external table calls_2 stored as parquet partitioned by (date) location 'tables/build=2/calls/';
create view calls as select *, 1 as build from calls_1 union all select *, 2 as build from calls_2;
create external table functions_1 stored as parquet partitioned by (date) location 'tables/build=1/functions/';
create external table functions_2 stored as parquet partitioned by (date) location 'tables/build=2/functions/';
create view functions as select *, 1 as build from functions_1 union all select *, 2 as build from functions_2;
create external table samples_1 stored as parquet partitioned by (date) location 'tables/build=1/samples/';
create external table samples_2 stored as parquet partitioned by (date) location 'tables/build=2/samples/';
create view samples as select *, 1 as build from samples_1 union all select *, 2 as build from samples_2;
create external table allocations_1 stored as parquet partitioned by (date) location 'tables/build=1/allocations/';
create external table allocations_2 stored as parquet partitioned by (date) location 'tables/build=2/allocations/';
create view allocations as select *, 1 as build from allocations_1 union all select *, 2 as build from allocations_2;
create external table events_1 stored as parquet partitioned by (date) location 'tables/build=1/events/';
create external table events_2 stored as parquet partitioned by (date) location 'tables/build=2/events/';
create view events as select *, 1 as build from events_1 union all select *, 2 as build from events_2;
create external table processes_1 stored as parquet partitioned by (date) location 'tables/build=1/processes/';
create external table processes_2 stored as parquet partitioned by (date) location 'tables/build=2/processes/';
create view processes as select *, 1 as build from processes_1 union all select *, 2 as build from processes_2;
create external table stacks_1 stored as parquet partitioned by (date) location 'tables/build=1/stacks/';
create external table stacks_2 stored as parquet partitioned by (date) location 'tables/build=2/stacks/';
create view stacks as select *, 1 as build from stacks_1 union all select *, 2 as build from stacks_2;
create external table traces_1 stored as parquet partitioned by (date) location 'tables/build=1/traces/';
create external table traces_2 stored as parquet partitioned by (date) location 'tables/build=2/traces/';
create view traces as select *, 1 as build from traces_1 union all select *, 2 as build from traces_2;

-- How long does which call take?
select name, count(*) as calls, count(errno) as errors, sum(dur_ns) as total_ns, min(dur_ns) as min_ns,
       array_max(array_slice(array_agg(dur_ns order by dur_ns), 1, (count(dur_ns) + 1) / 2)) as p50_ns,
       array_max(array_slice(array_agg(dur_ns order by dur_ns), 1, (99 * count(dur_ns) + 99) / 100)) as p99_ns, max(dur_ns) as max_ns
from calls where ret is not null
group by name order by total_ns desc;

-- How long do calls take with which file?
select path, count(*) as calls, count(errno) as errors, sum(dur_ns) as total_ns,
       array_max(array_slice(array_agg(dur_ns order by dur_ns), 1, (99 * count(dur_ns) + 99) / 100)) as p99_ns
from calls where ret is not null and path is not null
group by path order by total_ns desc;

-- How does a latency change over time?
select date_bin(interval '100 milliseconds', time) as since, count(*) as calls,
       array_max(array_slice(array_agg(dur_ns order by dur_ns), 1, (99 * count(dur_ns) + 99) / 100)) as p99_ns
from calls where name = 'fsync'
group by since order by since;

-- Which files are opened to be changed?
select path, count(*) as opens
from calls where name = 'openat' and regexp_like(args, '"flags":\[[^]]*"O_(WRONLY|RDWR)"') and errno is null
group by path order by opens desc;

-- Which connections fail, and how long do they take?
select addr, port, count(*) as calls, count(errno) as errors, max(errno) as errno,
       array_max(array_slice(array_agg(dur_ns order by dur_ns), 1, (99 * count(dur_ns) + 99) / 100)) as p99_ns
from calls where name = 'connect'
group by addr, port order by errors desc, calls desc;

-- How long do programs take until they do something?
select p.exe, count(*) as processes, median(cast(c.time_ns - p.time_ns as double)) as median_ns, max(c.time_ns - p.time_ns) as max_ns
from processes p
join (select trace, pid, min(time_ns) as time_ns from calls where name in ('write', 'writev', 'sendto', 'sendmsg') group by trace, pid) c
    using (trace, pid)
group by p.exe order by median_ns desc;

-- Which processes have failed?
select p.host, p.pid, p.argv, p.exit_code, p.exit_signal,
       last_value(c.name || ' ' || coalesce(c.path, '') order by c.time_ns) filter (where c.errno is not null) as last_error
from processes p left join calls c using (trace, pid)
where p.exit_code > 0 or p.exit_signal is not null
group by p.host, p.pid, p.argv, p.exit_code, p.exit_signal order by p.pid;

-- What has become slower from one build to the next?
with runs as (
    select build, trace, name, count(*) as calls, sum(dur_ns) as total_ns
    from calls where ret is not null and name not in ('wait4', 'accept')
    group by build, trace, name
), builds as (
    select build, name, count(*) as runs, median(cast(calls as double)) as calls, median(cast(total_ns as double)) as total_ns
    from runs group by build, name
)
select name, a.runs as runs_before, b.runs as runs_after, a.calls as calls_before, b.calls as calls_after,
       a.total_ns as before_ns, b.total_ns as after_ns, floor(b.total_ns / a.total_ns * 100) / 100 as ratio
from builds a join builds b using (name)
where a.build = 1 and b.build = 2
order by after_ns - before_ns desc;

-- Which errors does which version have?
with versions as (
    select distinct trace, regexp_match(args, '"path":"([^"]*/)?([^"/]*)"')[2] as program, regexp_match(args, '"build_id":"([^"]*)"')[1] as version
    from events where name = 'process:map'
)
select c.exe, version, c.name, c.errno, count(*) as errors
from calls c left join versions v on v.trace = c.trace and v.program = regexp_match(c.exe, '[^/]*$')[1]
where c.errno is not null
group by c.exe, version, c.name, c.errno order by errors desc;
