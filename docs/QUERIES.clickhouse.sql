-- The questions of QUERIES.md in ClickHouse: those whose statements differ there, each below its heading. The others are those of the page.

-- Setup
set join_use_nulls = 1, prefer_column_name_to_alias = 1;
create view calls as select * from file('tables/*/calls/*/*/*.parquet');
create view functions as select * from file('tables/*/functions/*/*/*.parquet');
create view samples as select * from file('tables/*/samples/*/*/*.parquet');
create view allocations as select * from file('tables/*/allocations/*/*/*.parquet');
create view events as select * from file('tables/*/events/*/*/*.parquet');
create view processes as select * from file('tables/*/processes/*/*/*.parquet');
create view stacks as select * from file('tables/*/stacks/*/*/*.parquet');
create view traces as select * from file('tables/*/traces/*/*/*.parquet');

-- How long does which call take?
select name, count(*) as calls, count(errno) as errors, sum(dur_ns) as total_ns, min(dur_ns) as min_ns,
       arraySort(groupArray(dur_ns))[intDiv(count(dur_ns) + 1, 2)] as p50_ns,
       arraySort(groupArray(dur_ns))[intDiv(99 * count(dur_ns) + 99, 100)] as p99_ns, max(dur_ns) as max_ns
from calls where ret is not null
group by name order by total_ns desc;

-- How long do calls take with which file?
select path, count(*) as calls, count(errno) as errors, sum(dur_ns) as total_ns,
       arraySort(groupArray(dur_ns))[intDiv(99 * count(dur_ns) + 99, 100)] as p99_ns
from calls where ret is not null and path is not null
group by path order by total_ns desc;

-- How does a latency change over time?
select toStartOfInterval(time, interval 100 millisecond) as since, count(*) as calls,
       arraySort(groupArray(dur_ns))[intDiv(99 * count(dur_ns) + 99, 100)] as p99_ns
from calls where name = 'fsync'
group by since order by since;

-- Which files are opened to be changed?
select path, count(*) as opens
from calls where name = 'openat' and hasAny(JSONExtract(ifNull(args, ''), 'flags', 'Array(String)'), ['O_WRONLY', 'O_RDWR']) and errno is null
group by path order by opens desc;

-- Which connections fail, and how long do they take?
select addr, port, count(*) as calls, count(errno) as errors, max(errno) as errno,
       arraySort(groupArray(dur_ns))[intDiv(99 * count(dur_ns) + 99, 100)] as p99_ns
from calls where name = 'connect'
group by addr, port order by errors desc, calls desc;

-- How long do programs take until they do something?
select p.exe, count(*) as processes, quantileExactInclusive(0.5)(c.time_ns - p.time_ns) as median_ns, max(c.time_ns - p.time_ns) as max_ns
from processes p
join (select trace, pid, min(time_ns) as time_ns from calls where name in ('write', 'writev', 'sendto', 'sendmsg') group by trace, pid) c
    using (trace, pid)
group by p.exe order by median_ns desc;

-- Which processes have failed?
select p.host, p.pid, p.argv, p.exit_code, p.exit_signal, argMaxIf(c.name || ' ' || coalesce(c.path, ''), c.time_ns, c.errno is not null) as last_error
from processes p left join calls c using (trace, pid)
where p.exit_code > 0 or p.exit_signal is not null
group by all order by p.pid;

-- Which stacks have allocated the most?
with folded as (
    select trace, stack_id, arrayStringConcat(arrayMap(frame -> frame.2, arraySort(groupArray((-depth, coalesce(function, module, '?'))))), ';') as stack
    from stacks group by trace, stack_id
)
select stack, count(*) as blocks, sum(size) as bytes
from allocations left join folded using (trace, stack_id)
where name = 'heap:malloc'
group by stack order by bytes desc;

-- What has become slower from one build to the next?
with runs as (
    select build, trace, name, count(*) as calls, sum(dur_ns) as total_ns
    from calls where ret is not null and name not in ('wait4', 'accept')
    group by build, trace, name
), builds as (
    select build, name, count(*) as runs, quantileExactInclusive(0.5)(calls) as calls, quantileExactInclusive(0.5)(total_ns) as total_ns
    from runs group by build, name
)
select name, a.runs as runs_before, b.runs as runs_after, a.calls as calls_before, b.calls as calls_after,
       a.total_ns as before_ns, b.total_ns as after_ns, floor(b.total_ns / a.total_ns * 100) / 100 as ratio
from builds a join builds b using (name)
where a.build = 1 and b.build = 2
order by after_ns - before_ns desc;

-- Which errors does which version have?
with versions as (
    select distinct trace, extract(JSONExtractString(args, 'path'), '[^/]*$') as program, JSONExtractString(args, 'build_id') as version
    from events where name = 'process:map'
)
select c.exe, version, c.name, c.errno, count(*) as errors
from calls c left join versions v on v.trace = c.trace and v.program = extract(c.exe, '[^/]*$')
where c.errno is not null
group by all order by errors desc;
